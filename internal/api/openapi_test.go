package api_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/engined/engined/internal/api"
)

var update = flag.Bool("update", false, "write docs/openapi.json")

const committed = "../../docs/openapi.json"

func TestOpenAPIIsCommitted(t *testing.T) {
	t.Parallel()
	now, err := api.OpenAPI(api.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(committed, now, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	then, err := os.ReadFile(committed)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(now, then) {
		t.Error("docs/openapi.json is stale; run: go test ./internal/api -run OpenAPI -update")
	}
	again, err := api.OpenAPI(api.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(now, again) {
		t.Error("the document differs from one time to the next")
	}
}

func TestOpenAPIHoldsTogether(t *testing.T) {
	t.Parallel()
	raw, err := api.OpenAPI(api.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		OpenAPI string
		Info    struct {
			Limits api.Limits `json:"x-limits"`
		}
		Paths      map[string]map[string]struct{ OperationID, Summary string }
		Components struct {
			Schemas map[string]struct {
				Properties map[string]struct{ Description string }
			}
		}
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(doc.OpenAPI, "3.1") || doc.Info.Limits.MessageBytes != 8<<20 {
		t.Errorf("version %s, limits %+v", doc.OpenAPI, doc.Info.Limits)
	}
	for _, m := range regexp.MustCompile(`"#/components/schemas/([^"]+)"`).FindAllSubmatch(raw, -1) {
		if _, ok := doc.Components.Schemas[string(m[1])]; !ok {
			t.Errorf("schema %s is referred to and missing", m[1])
		}
	}
	for name, s := range doc.Components.Schemas {
		if strings.HasSuffix(name, "Params") {
			for field, p := range s.Properties {
				if p.Description == "" && field != "message" && field != "reason" && field != "citationsMode" && field != "runtimeContext" {
					t.Errorf("%s.%s has no description", name, field)
				}
			}
		}
	}
	seen := map[string]bool{}
	for path, byMethod := range doc.Paths {
		for method, op := range byMethod {
			if op.OperationID == "" || op.Summary == "" || seen[op.OperationID] {
				t.Errorf("%s %s: operation %+v", method, path, op)
			}
			seen[op.OperationID] = true
		}
	}
	if len(seen) < 20 {
		t.Errorf("%d operations", len(seen))
	}
}
