package config

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheDocumentationIsUpToDate(t *testing.T) {
	t.Parallel()
	want, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	if err := Markdown(&got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("run: go run ./cmd/engined config --markdown > docs/configuration.md\n%s", diff)
	}
}

func TestEveryOptionHasARow(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	if err := Markdown(&b); err != nil {
		t.Fatal(err)
	}
	for _, o := range Options() {
		if n := strings.Count(b.String(), "\n| `"+o.Name+"` |"); n != 1 {
			t.Errorf("%s has %d rows", o.Name, n)
		}
	}
}
