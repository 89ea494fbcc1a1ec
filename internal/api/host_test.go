package api_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/engined/engined/internal/api"
)

// TestOtherHostsOfAKeylessNode: a name that was made to resolve to this machine
// reaches nothing.
func TestOtherHostsOfAKeylessNode(t *testing.T) {
	t.Parallel()
	page := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	_, local := withSession(t, func(c *api.Config) { c.Local, c.LocalNames, c.Console = true, []string{"box.internal"}, page })
	_, open := withSession(t, func(c *api.Config) { c.Console = page })
	for host, want := range map[string]int{
		"127.0.0.1:7420": 200, "127.8.9.1": 200, "[::1]:7420": 200, "[::1]": 200, "localhost": 200, "LOCALHOST:1": 200, "localhost.:1": 200,
		"box.internal:7420": 200, "Box.Internal": 200, "": 200,
		"evil.example": 403, "evil.example:7420": 403, "localhost.evil.example": 403, "127.0.0.1.evil.example:1": 403,
		"10.0.0.1:7420": 403, "[fe80::1]:7420": 403, "0.0.0.0:7420": 403, "x:y:z": 403,
	} {
		for _, path := range []string{"/v1/sessions", "/metrics", "/docs", "/console/", "/console/main.js", known + "/events"} {
			r := httptest.NewRequest(http.MethodGet, path, http.NoBody)
			r.Host = host
			w := httptest.NewRecorder()
			local.ServeHTTP(w, r)
			if w.Code != want {
				t.Errorf("%q, %s: %d, want %d", host, path, w.Code, want)
			}
			if want == http.StatusForbidden {
				if slug, p := problem(t, w); slug != "forbidden" || p.Field != "Host" {
					t.Errorf("%q: %s %+v", host, slug, p)
				}
			}
			w = httptest.NewRecorder()
			if open.ServeHTTP(w, r); w.Code != 200 {
				t.Errorf("a node with keys or an outer address, %q: %d", host, w.Code)
			}
		}
	}
}
