package api_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/api"
	"github.com/engined/engined/internal/store"
)

func TestEnginesAndTheirQuarantines(t *testing.T) {
	t.Parallel()
	var cleared []string
	_, a := withSession(t, func(c *api.Config) {
		c.Engines = func() api.EngineList {
			return api.EngineList{
				Serving: "legacy",
				Engines: []api.EngineStatus{{
					Info: contextengine.Info{ID: "a/b", Name: "A", AcceptedHostParams: []contextengine.HostParam{}}, Owner: "remote:a",
					Slot: "contextEngine", Quarantine: "boom",
				}},
				Quarantines: []api.Quarantine{{EngineID: "a/b", Operation: "assemble", Reason: "boom", FailedAt: time.Unix(0, 0).UTC(), Owner: "remote:a"}},
			}
		}
		c.ClearQuarantine = func(id string) bool {
			cleared = append(cleared, id)
			return id == "a/b"
		}
	})
	w := ask(a, http.MethodGet, "/v1/engines", "")
	const want = `{"serving":"legacy","engines":[{"id":"a/b","name":"A","acceptedHostParams":[],"owner":"remote:a","slot":"contextEngine","quarantine":"boom"}],` +
		`"quarantines":[{"engineId":"a/b","operation":"assemble","reason":"boom","failedAt":"1970-01-01T00:00:00Z","owner":"remote:a"}]}`
	if got := strings.TrimSpace(w.Body.String()); w.Code != 200 || got != want {
		t.Errorf("%d %s", w.Code, got)
	}
	for _, tc := range []struct {
		path    string
		cleared bool
	}{{"/v1/engines/a%2Fb/quarantine", true}, {"/v1/engines/other/quarantine", false}} {
		var res api.QuarantineCleared
		w := ask(a, http.MethodDelete, tc.path, "")
		if err := json.Unmarshal(w.Body.Bytes(), &res); err != nil || w.Code != 200 || res.Cleared != tc.cleared {
			t.Errorf("%s: %d %s, %v", tc.path, w.Code, w.Body, err)
		}
	}
	if diff := cmp.Diff([]string{"a/b", "other"}, cleared); diff != "" {
		t.Error(diff)
	}
	if w := ask(a, http.MethodPost, "/v1/engines/x/quarantine", "{}"); w.Code != http.StatusMethodNotAllowed || !strings.Contains(w.Header().Get("Allow"), "DELETE") {
		t.Errorf("%d, allow %s", w.Code, w.Header().Get("Allow"))
	}
}

// TestAFailedEngineIsNamedAndNotQuoted: its error may hold another session's
// text. What the default engine said decides where it said anything.
func TestAFailedEngineIsNamedAndNotQuoted(t *testing.T) {
	t.Parallel()
	broke := errors.New("password=hunter2")
	for _, tc := range []struct {
		err    error
		status int
		slug   string
	}{
		{broke, 502, "engine-failed"},
		{errors.Join(broke, store.ErrUnavailable), 503, "unavailable"},
		{errors.Join(broke, &contextengine.InvalidError{Field: "message"}), 422, "validation"},
	} {
		f, a := withSession(t, nil)
		f.err = &contextengine.EngineFailedError{EngineID: "acme", Operation: "compact", Err: tc.err}
		w := ask(a, http.MethodPost, known+"/compact", "{}")
		slug, _ := problem(t, w)
		if w.Code != tc.status || slug != tc.slug || strings.Contains(w.Body.String(), "hunter2") {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		if tc.status == 502 && !strings.Contains(w.Body.String(), "acme") {
			t.Errorf("the engine is not named: %s", w.Body)
		}
	}
}
