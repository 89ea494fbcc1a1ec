package api

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/engined/engined/internal/access"
)

const securityDoc = "../../docs/security.md"

// TestEveryRouteStatesItsScope holds the table of callers to the routes.
func TestEveryRouteStatesItsScope(t *testing.T) {
	t.Parallel()
	public := []string{"health", "ready", "metrics"}
	table := callers()
	for _, op := range operations() {
		scopes, stated := table[op.id]
		switch {
		case op.public != slices.Contains(public, op.id):
			t.Errorf("%s %s: needs no key: %v", op.method, op.path, op.public)
		case op.public && stated:
			t.Errorf("%s has a scope and needs no key", op.id)
		case !op.public && (!stated || scopes == 0):
			t.Errorf("%s %s: the operation %s has no scope in callers", op.method, op.path, op.id)
		}
	}
}

// TestTheDocumentedScopesAreTheTable compares, or with -update writes.
func TestTheDocumentedScopesAreTheTable(t *testing.T) {
	t.Parallel()
	const begin, end = "<!-- scopes -->\n", "<!-- end of scopes -->\n"
	raw, err := os.ReadFile(securityDoc)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(raw), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no table of scopes", securityDoc)
	}
	now := head + begin + scopeTable() + end + tail
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(securityDoc, []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if now != string(raw) {
		t.Errorf("the table in %s is stale; run: go test ./internal/api -run OpenAPI\\|Scopes -update", securityDoc)
	}
}

func scopeTable() string {
	var b strings.Builder
	b.WriteString("| Call | gateway | worker | analyst | admin |\n|---|---|---|---|---|\n")
	for _, op := range operations() {
		if op.public {
			continue
		}
		b.WriteString("| `" + op.method + " " + op.path + "` |")
		for bit := range 4 {
			if access.Scopes(1 << bit).Allow(op.scopes) {
				b.WriteString(" ✓ |")
			} else {
				b.WriteString("  |")
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}
