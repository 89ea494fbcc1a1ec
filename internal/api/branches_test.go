package api_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/api"
)

func TestForkIsPassedOn(t *testing.T) {
	t.Parallel()
	f, a := withSession(t, nil)
	w := ask(a, http.MethodPost, known+"/fork", `{"newSessionKey":"agent:new/1","atSeq":7}`)
	p, ok := f.params().(forked)
	if w.Code != 200 || strings.TrimSpace(w.Body.String()) != `{"head":1,"epoch":1}` || !ok || p.session.SessionKey != "known" || p.to != "agent:new/1" || *p.at != 7 {
		t.Errorf("%d %s, %+v", w.Code, w.Body, p)
	}
	w = ask(a, http.MethodPost, known+"/fork", `{"newSessionKey":"n"}`)
	if p, _ := f.params().(forked); w.Code != 200 || p.at != nil {
		t.Errorf("%d, %+v", w.Code, p)
	}
	w = ask(a, http.MethodPost, known+"/fork", `{"newSessionKey":"n","expectedEpoch":9}`)
	if slug, _ := problem(t, w); slug != "epoch-conflict" {
		t.Error(slug)
	}
}

func TestPreparationIsPassedOn(t *testing.T) {
	t.Parallel()
	f, a := withSession(t, nil)
	w := ask(a, http.MethodPost, known+"/subagents", `{"childSessionKey":"c","childSessionId":"s2","ttlMs":1500}`)
	want := contextengine.PrepareSubagentSpawnParams{
		Session: contextengine.Session{Tenant: "default", SessionKey: "known"}, ChildSessionKey: "c", ChildSessionID: "s2", TTLMs: 1500,
	}
	if diff := cmp.Diff(want, f.params()); w.Code != 200 || strings.TrimSpace(w.Body.String()) != `{"preparationId":"p1"}` || diff != "" {
		t.Errorf("%d %s %s", w.Code, w.Body, diff)
	}
}

func TestChildKeysRoundTrip(t *testing.T) {
	t.Parallel()
	f := newFake()
	a := newAPI(t, f, nil)
	server := httptest.NewServer(a)
	defer server.Close()
	for _, key := range keys() {
		for _, parent := range []string{"p", "/", "a/b", ".."} {
			base := "/v1/sessions/" + url.PathEscape(parent) + "/subagents/" + url.PathEscape(key)
			if key == "." || key == ".." {
				base = "/v1/sessions/" + url.PathEscape(parent) + "/subagents/" + strings.ReplaceAll(key, ".", "%2E")
			}
			status, body := overWire(t, server, http.MethodPost, base+"/rollback", "")
			if p, ok := f.params().(rolledBack); status != 200 || strings.TrimSpace(body) != `{"rolledBack":true}` || !ok || p.child != key || p.session.SessionKey != parent {
				t.Errorf("rollback of %q under %q: %d %s, %+v", key, parent, status, body, p)
			}
			status, body = overWire(t, server, http.MethodPost, base+"/ended", `{"reason":"swept"}`)
			p, ok := f.params().(contextengine.SubagentEndedParams)
			if status != 200 || strings.TrimSpace(body) != `{"ended":true}` || !ok || p.ChildSessionKey != key || p.SessionKey != parent || p.Reason != contextengine.SubagentSwept {
				t.Errorf("end of %q under %q: %d %s, %+v", key, parent, status, body, p)
			}
		}
	}
	for _, bad := range []string{"%00", "%ff", strings.Repeat("k", 513)} {
		for route, body := range map[string]string{"rollback": "{}", "ended": `{"reason":"swept"}`} {
			w := ask(a, http.MethodPost, "/v1/sessions/p/subagents/"+bad+"/"+route, body)
			if slug, p := problem(t, w); slug != "validation" || p.Field != "childSessionKey" {
				t.Errorf("%s of %.20s: %s %+v", route, bad, slug, p)
			}
		}
	}
}

func TestEndedTakesTheFourReasonsAndNoOther(t *testing.T) {
	t.Parallel()
	_, a := withSession(t, nil)
	for reason, status := range map[string]int{
		"deleted": 200, "completed": 200, "swept": 200, "released": 200, "": 422, "Deleted": 422, "done": 422, "deleted,swept": 422,
	} {
		body, err := json.Marshal(map[string]string{"reason": reason})
		if err != nil {
			t.Fatal(err)
		}
		if w := ask(a, http.MethodPost, known+"/subagents/c/ended", string(body)); w.Code != status {
			t.Errorf("%q: %d, want %d", reason, w.Code, status)
		}
	}
}

func TestSessionShowsItsLineage(t *testing.T) {
	t.Parallel()
	_, a := withSession(t, nil)
	var d api.SessionDetail
	if err := json.Unmarshal(ask(a, http.MethodGet, known, "").Body.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	want := api.Lineage{
		Parent:   &api.Relative{SessionKey: "mother", Kind: "subagent", ContextMode: "fork", AtSeq: 4, EndReason: "completed"},
		Children: []api.Relative{{SessionKey: "daughter", Kind: "fork", AtSeq: 2}},
	}
	if diff := cmp.Diff(want, d.Lineage); diff != "" {
		t.Error(diff)
	}
}
