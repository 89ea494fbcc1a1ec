package api_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/engined/engined/internal/access"
	"github.com/engined/engined/internal/api"
)

// TestKeysOfEveryScopeAtEveryRoute walks the OpenAPI document: a key is refused
// exactly where the document does not name its scope.
func TestKeysOfEveryScopeAtEveryRoute(t *testing.T) {
	t.Parallel()
	raw, err := api.OpenAPI(api.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]struct {
			OperationID string
			Security    []map[string][]string
		}
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	_, a := withSession(t, func(c *api.Config) {
		c.Auth = api.RingAuth(func(_ context.Context, token string) (access.Principal, error) {
			scopes, err := access.ParseScopes([]string{token})
			if err != nil {
				return access.Principal{}, api.ErrUnauthorized
			}
			return access.Principal{Tenant: "default", Scopes: scopes}, nil
		})
	})
	refused := map[string]int{}
	for path, byMethod := range doc.Paths {
		path = strings.NewReplacer("{key}", "unknown", "{engine}", "x", "{id}", "1", "{child}", "x").Replace(path)
		for method, op := range byMethod {
			method = strings.ToUpper(method)
			ctx, cancel := context.WithCancel(t.Context())
			cancel() // streams end at once
			for _, scope := range []string{"gateway", "worker", "analyst", "admin", ""} {
				r := newRequest(method, path, "{}", "Authorization", "Bearer "+scope)
				w := serveRequest(a, r.WithContext(ctx))
				allowed := op.Security == nil || slices.ContainsFunc(op.Security, func(s map[string][]string) bool { return slices.Contains(s["key"], scope) })
				switch {
				case scope == "" && op.Security != nil:
					if w.Code != http.StatusUnauthorized {
						t.Errorf("%s without a key: %d", op.OperationID, w.Code)
					}
				case allowed == (w.Code == http.StatusForbidden):
					t.Errorf("%s with a key of %s: %d %s", op.OperationID, scope, w.Code, w.Body)
				case !allowed:
					refused[scope]++
					if slug, p := problem(t, w); slug != "forbidden" || !strings.Contains(p.Detail, "admin") {
						t.Errorf("%s: %s %s", op.OperationID, slug, p.Detail)
					}
				}
			}
		}
	}
	if refused["gateway"] == 0 || refused["worker"] <= refused["gateway"] || refused["analyst"] <= refused["gateway"] || refused["admin"] != 0 {
		t.Errorf("refused %v", refused)
	}
}
