package hostlog_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/engined/engined/internal/hostlog"
)

func decode(t *testing.T, raw string) hostlog.Entry {
	t.Helper()
	e, err := hostlog.Decode(json.RawMessage(raw))
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return e
}

func TestDecode(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 500)
	for raw, want := range map[string]hostlog.Entry{
		`{"type":"session","version":4,"id":"s1","cwd":"/w"}`:                             {Kind: hostlog.Header, Type: "session", ID: "s1"},
		`{"type":"model_change","id":"m","parentId":null,"modelId":"x"}`:                  {Type: "model_change", ID: "m", Rooted: true},
		`{"type":"compaction","id":"c","parentId":"a","summary":"s"}`:                     {Type: "compaction", ID: "c", Parent: "a"},
		`{"type":"reset","id":"r","parentId":"a","reason":"new","firstKeptEntryId":"b"}`:  {Kind: hostlog.Reset, Type: "reset", ID: "r", Parent: "a", Reason: "new", FirstKept: "b"},
		`{"type":"leaf","id":"l","parentId":"a","targetId":"b"}`:                          {Kind: hostlog.Leaf, Type: "leaf", ID: "l", Parent: "a", Target: "b"},
		`{"type":"leaf","id":"l","targetId":null}`:                                        {Kind: hostlog.Leaf, Type: "leaf", ID: "l"},
		`{"type":"leaf","id":"l"}`:                                                        {Type: "leaf", ID: "l"},
		`{"type":"label","id":"x","parentId":"a","appendMode":"side"}`:                    {Type: "label", ID: "x", Parent: "a", Side: true},
		`{"type":"custom","id":7,"parentId":1.50}`:                                        {Type: "custom", ID: "7", Parent: "1.50"},
		`{"type":"message","message":{"role":"user",  "content":"\ud800"}}`:               {Kind: hostlog.Message, Type: "message", Message: json.RawMessage(`{"role":"user",  "content":"\ud800"}`)},
		`{"role":"user","content":"x"}`:                                                   {Kind: hostlog.Message, Type: "message", Message: json.RawMessage(`{"role":"user","content":"x"}`)},
		`{"type":"custom_message","id":"n","customType":"t","content":"c","timestamp":5}`: {Kind: hostlog.Message, Type: "custom_message", ID: "n", Message: json.RawMessage(`{"role":"custom","customType":"t","content":"c","timestamp":5}`)},
		`{"type":"branch_summary","id":"b","summary":"s","fromId":"f","timestamp":"1970-01-01T00:00:01Z"}`: {
			Kind: hostlog.Message, Type: "branch_summary", ID: "b", Message: json.RawMessage(`{"role":"branchSummary","summary":"s","fromId":"f","timestamp":1000}`),
		},
	} {
		want.Raw = json.RawMessage(raw)
		if diff := cmp.Diff(want, decode(t, raw)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", raw, diff)
		}
	}
	for _, id := range []string{`"` + long + `"`, `"a\u0000b"`} {
		e := decode(t, `{"type":"label","id":`+id+`}`)
		if !strings.HasPrefix(e.ID, "sha256-") || len(e.ID) > 100 {
			t.Errorf("id %.20s became %q", id, e.ID)
		}
	}
	for _, raw := range []string{`{}`, `1`, `[]`, `null`, ``, `{`, `{"type":1}`, `{"type":"message"}`, `{"type":"message","message":"x"}`, `{"type":"message","message":null}`} {
		if e, err := hostlog.Decode(json.RawMessage(raw)); err == nil {
			t.Errorf("%s was read as %+v", raw, e)
		}
	}
}

func TestDerivedIDsAreStableAndTellRepeatsApart(t *testing.T) {
	t.Parallel()
	a := decode(t, `{"type":"message","timestamp":1,"message":{"role":"user","content":"ok"}}`)
	b := decode(t, `{"type":"message","message":{"content":"ok","role":"user"},"timestamp":2}`)
	if a.Derive(0) != b.Derive(0) {
		t.Error("the same message has two ids")
	}
	if a.Derive(0) == a.Derive(1) {
		t.Error("a repeat has the first one's id")
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		`{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"x"}}`,
		`{"type":"reset","id":"a","firstKeptEntryId":1e400}`, `{"type":"leaf","targetId":{}}`, `{"role":"user"}`,
		`{"type":"custom_message","timestamp":"2026-01-01T00:00:00Z","content":[1],"details":{"a":null}}`, `{"type":"x","type":"leaf"}`, "{\"id\":\"\\u0000\"}",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		e, err := hostlog.Decode(raw)
		if err != nil {
			return
		}
		for _, id := range []string{e.ID, e.Parent, e.Target, e.FirstKept} {
			if len(id) > 400 || strings.IndexByte(id, 0) >= 0 {
				t.Errorf("id %q can't be a key", id)
			}
		}
		if (e.Kind == hostlog.Message) != (e.Message != nil) {
			t.Errorf("kind %d with message %q", e.Kind, e.Message)
		}
		if e.Message != nil && !json.Valid(e.Message) {
			t.Errorf("message %q is no JSON", e.Message)
		}
		if e.Type == "message" && !bytes.Contains(raw, e.Message) {
			t.Errorf("message %q is not as it came", e.Message)
		}
		if utf8.Valid(raw) && !utf8.ValidString(e.Derive(0)) {
			t.Error("derived id is no text")
		}
	})
}

func TestOddIDsStayApart(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, id := range []string{`"\ud800"`, `"\ud801"`, `"\udfff"`, `"\ufffd"`, `"a\u0000"`, `"a\u0001"`, `"1"`, `"` + strings.Repeat("x", 600) + `"`, `"` + strings.Repeat("x", 601) + `"`} {
		e, err := hostlog.Decode([]byte(`{"type":"message","id":` + id + `,"message":{"role":"user","content":"same"}}`))
		if err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		if other, taken := seen[e.ID]; taken || e.ID == "" || strings.IndexByte(e.ID, 0) >= 0 {
			t.Errorf("%s is %q, as %s", id, e.ID, other)
		}
		seen[e.ID] = id
	}
}
