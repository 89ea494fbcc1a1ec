package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/engined/engined/contextengine"
)

func TestTranscriptCursorNamesItsLane(t *testing.T) {
	t.Parallel()
	_, a := withSession(t, nil)
	w := ask(a, http.MethodGet, known+"/transcript?sessionId=s%2F1&gatewayId=g", "")
	if got, want := strings.TrimSpace(w.Body.String()), `{"cursor":null,"lifecycleRevision":"g/s/1"}`; w.Code != http.StatusOK || got != want {
		t.Errorf("%d %s, want %s", w.Code, got, want)
	}
	for _, query := range []string{"", "?sessionId=", "?sessionId=a%00b", "?sessionId=" + strings.Repeat("x", 600), "?gatewayId=g", "?sessionId=s&gatewayId=%00"} {
		if w := ask(a, http.MethodGet, known+"/transcript"+query, ""); w.Code != http.StatusUnprocessableEntity {
			t.Errorf("%q: %d %s", query, w.Code, w.Body)
		}
	}
}

func TestResetBindsTheNextHostSession(t *testing.T) {
	t.Parallel()
	f, a := withSession(t, nil)
	for _, c := range []struct {
		body string
		want string // the host session that is bound, none for ""
	}{
		{`{"sessionId":"s","nextSessionId":"s2","gatewayId":"g","reason":"new"}`, "s2"},
		{`{"sessionId":"s","nextSessionId":"s"}`, ""},
		{`{"sessionId":"s"}`, ""},
	} {
		if w := ask(a, http.MethodPost, known+"/reset", c.body); w.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", c.body, w.Code, w.Body)
		}
		got := ""
		if p, ok := f.params().(contextengine.TranscriptParams); ok {
			got = p.SessionID
			if p.GatewayID != "g" || len(p.Entries) > 0 || p.Cursor != nil {
				t.Errorf("bound with %+v", p)
			}
		}
		if got != c.want {
			t.Errorf("%s bound %q, want %q", c.body, got, c.want)
		}
	}
}
