package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/engined/engined/internal/api"
	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/message"
)

// verbatim are messages that a JSON library would write differently.
func verbatim() []string {
	return []string{
		`{"role":"user","content":"z","a":1,"Z":2,"_":3}`,
		`{"role":"user","content":"<b>&amp;</b> & > <"}`,
		`{"role":"user","content":"what's the \u0000 weather"}`,
		`{"role":"user","content":"six chars: \\u0000"}`,
		`{"role":"user","content":"\ud99c alone \udc80\ud800 reversed"}`,
		`{"role":"user","content":"\u00e9\u00E9é\/\u002f\ud83e\udd9e🦞"}`,
		`{"role":"user","n":[12345678901234567890123,1e400,-0,0.10,1E+2,1.0]}`,
		`{ "role" : "user" ,` + "\n\t" + `"content" : [ ] , "x" : { } }`,
		`{"role":"user","role":"assistant","content":"twice"}`,
		"{\"role\":\"user\",\"content\":\"\u2028\u2029\u007f\ufeff\"}",
		`{"role":"user","content":"` + strings.Repeat("x", 300_000) + `"}`,
		`{}`,
	}
}

func TestMessagesComeBackVerbatim(t *testing.T) {
	t.Parallel()
	f := newFake()
	a := newAPI(t, f, nil)
	all := verbatim()
	for _, m := range all {
		for _, body := range []struct{ key, route, body string }{
			{"one", "ingest", `{"isHeartbeat":false,"message": ` + m + ` ,"x":1}`},
			{"gz", "ingest", zipped(t, `{"message":`+m+`}`)},
		} {
			headers := []string{}
			if body.key == "gz" {
				headers = []string{"Content-Encoding", "gzip"}
			}
			if w := ask(a, http.MethodPost, "/v1/sessions/"+body.key+"/"+body.route, body.body, headers...); w.Code != 200 {
				t.Fatalf("%.60s: %d %s", m, w.Code, w.Body)
			}
		}
	}
	list := "[ " + strings.Join(all, " ,\n") + " ]"
	for key, c := range map[string][2]string{
		"batch":     {"ingest-batch", `{"messages":` + list + `}`},
		"bootstrap": {"bootstrap", `{"sessionId":"s","messages":` + list + `}`},
		"commit":    {"commit-turn", `{"advancementKey":"t","messages":` + list + `}`},
		"after":     {"after-turn", `{"prePromptMessageCount":1,"messages":[{"before":1},` + list[1:] + `}`},
	} {
		if w := ask(a, http.MethodPost, "/v1/sessions/"+key+"/"+c[0], c[1]); w.Code != 200 {
			t.Fatalf("%s: %d %s", c[0], w.Code, w.Body)
		}
	}
	for _, key := range []string{"one", "gz", "batch", "bootstrap", "commit", "after"} {
		w := ask(a, http.MethodPost, "/v1/sessions/"+key+"/assemble", `{}`)
		want := `{"messages":[` + strings.Join(all, ",") + `],"estimatedTokens":1,"systemPromptAddition":"<a> & b","head":`
		if got := w.Body.String(); !strings.HasPrefix(got, want) || !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s: window differs: %.2000s", key, got)
		}
		page := ask(a, http.MethodGet, "/v1/sessions/"+key+"/events", "").Body.String()
		for i, m := range all {
			if !strings.Contains(page, fmt.Sprintf(`{"seq":%d,"type":"message.appended"`, i+1)) || !strings.Contains(page, `"message":`+m+`}`) {
				t.Errorf("%s: row %d is not %.80s", key, i+1, m)
			}
		}
	}
	var window struct {
		Messages []json.RawMessage
		Head     int64
	}
	if err := json.Unmarshal(ask(a, http.MethodPost, "/v1/sessions/one/assemble", `{}`).Body.Bytes(), &window); err != nil || len(window.Messages) != len(all) {
		t.Errorf("%d messages, %v", len(window.Messages), err)
	}
}

// TestRowsAreWhatTheirTypeSays: rows are written by hand, so every member must
// be one of EventRow and mean what the document says.
func TestRowsAreWhatTheirTypeSays(t *testing.T) {
	t.Parallel()
	f := newFake()
	a := newAPI(t, f, nil)
	key := "k<&>\"\\\u2028"
	f.put("default", key, events.MessageAppended, []byte(`{"role":"user"}`))
	f.put("default", key, events.EpochRotated, []byte(`{"epoch":2}`))
	f.put("default", key, events.TurnCompleted, nil)
	log := f.sessions["default\x00"+key]
	log[0].Facts.Flags, log[0].ParentSeq, log[0].Gateway, log[0].HostSessionID = message.Heartbeat, 9, "g\"", "s"
	w := ask(a, http.MethodGet, "/v1/sessions/"+escapeAll(key)+"/events", "")
	dec := json.NewDecoder(bytes.NewReader(w.Body.Bytes()))
	dec.DisallowUnknownFields()
	var page api.EventPage
	if err := dec.Decode(&page); err != nil || len(page.Events) != 3 || page.Next != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	r := page.Events[0]
	if r.SessionKey != key || r.Seq != 1 || r.Epoch != 1 || r.Role != "user" || !r.IsHeartbeat || r.ParentSeq != 9 ||
		r.GatewayID != "g\"" || r.SessionID != "s" || r.Tokens != 7 || r.RecordedAt.Unix() != 1700000000 || r.Data != nil {
		t.Errorf("message row %+v", r)
	}
	if r := page.Events[1]; r.Type != "epoch.rotated" || string(r.Data) != `{"epoch":2}` || r.Message != nil || r.Role != "" {
		t.Errorf("epoch row %+v", r)
	}
	if r := page.Events[2]; r.Type != "turn.completed" || r.Data != nil {
		t.Errorf("turn row %+v", r)
	}
}
