package api

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/engined/engined/contextengine"
)

type liftedBody struct {
	contextengine.CommitTurnParams
	Messages messageList     `json:"messages"`
	Message  json.RawMessage `json:"message"`
}

// FuzzLift: where the short way decodes a body, encoding/json decodes the same.
func FuzzLift(f *testing.F) {
	for _, s := range []string{
		`{"message":{"a":1},"x":2}`, `{"messages":[{},{"a":[1,"]"]}],"tokenBudget":5}`, ` {"message" : {} }`, `{"message":{}}x`, `{"message":{},}`,
		`{"message":{},"message":{"b":1}}`, `{"message":{},"Message":{"b":1}}`, `{"mess\u0061ge":{"b":1},"message":{}}`, `{"meſſage":{"b":1},"message":{}}`,
		`{"messages":[{},]}`, `{"messages":[{}{}]}`, `{"messages":[{}],"messages":null}`, `{"messages":[ ]}`, `{"messages":[{} , {}]]}`, `{"message":{}]`,
		`{"a":"\\","message":{"b":"\\\""}}`, `{"a":{"message":{}}}`, `{"message":[{}]}`, `{"messages":{}}`, `{"message":{"a":}}`, `{"x":tru,"message":{}}`,
		`{"message":{}"a":1}`, `{"":1,"message":{}}`, `{"isHeartbeat":"x","message":{}}`, `{"messages":[{"a":1}],"runtimeContext":{"messages":[1]}}`,
		`{"message":{"a":"` + "\x01" + `"}}`, `{"messages":[[{}]]}`, `{"messages":[1,{}]}`, `{"message":{}null}`, `{}`, `[]`, `{"message":{`, `{"message"`,
	} {
		f.Add([]byte(s))
	}
	c := &call{api: &API{cfg: Config{Limits: Limits{}.withDefaults()}}}
	f.Fuzz(func(t *testing.T, body []byte) {
		if !utf8.Valid(body) {
			return // refused before
		}
		sent := bytes.Clone(body)
		for _, name := range []string{"message", "messages"} {
			short := liftedBody{Messages: c.newMessages()}
			m := c.liftMessages(&short.Messages)
			if name == "message" {
				m = c.liftMessage(&short.Message)
			}
			if done, err := m.unmarshal(body, &short); !done || err != nil {
				continue
			}
			whole := liftedBody{Messages: c.newMessages()}
			if err := json.Unmarshal(body, &whole); err != nil {
				t.Fatalf("took %q, which is %v", body, err)
			}
			if diff := cmp.Diff(whole, short, cmp.AllowUnexported(messageList{})); diff != "" {
				t.Errorf("%q:\n%s", body, diff)
			}
		}
		if !bytes.Equal(sent, body) {
			t.Error("the body was written to")
		}
	})
}

// TestLiftIsTaken: ordinary requests go the short way, or it would be there for
// nothing.
func TestLiftIsTaken(t *testing.T) {
	t.Parallel()
	c := &call{api: &API{cfg: Config{Limits: Limits{}.withDefaults()}}}
	for _, body := range []string{
		`{"sessionId":"s","message":{"role":"user","content":"é \\ \" \ud800 } ]"},"isHeartbeat":false}`,
		"{\n  \"message\": {\n \"a\": [1, {}]\n }\n}\n",
	} {
		var p contextengine.IngestParams
		if done, err := c.liftMessage(&p.Message).unmarshal([]byte(body), &p); !done || err != nil || len(p.Message) == 0 {
			t.Errorf("%s goes the long way", body)
		}
	}
	for body, want := range map[string]int{`{"messages":[]}`: 0, `{"messages":[ {} , {"a":"]"} ],"advancementKey":"k"}`: 2} {
		p := liftedBody{Messages: c.newMessages()}
		if done, err := c.liftMessages(&p.Messages).unmarshal([]byte(body), &p); !done || err != nil || p.Messages.items == nil || len(p.Messages.items) != want {
			t.Errorf("%s: %d items", body, len(p.Messages.items))
		}
	}
}
