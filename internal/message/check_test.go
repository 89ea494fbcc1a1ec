package message_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/engined/engined/internal/message"
)

func nested(n int) string {
	return `{"a":` + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) + `}`
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		body   string
		limits message.Limits
		want   *message.InvalidError
	}{
		"object":                {body: ` {"a":[1,-0.5e+3,true,false,null,"\u0000\ud800é"],"a":{}} `},
		"deepest":               {body: nested(512)},
		"too deep":              {body: nested(513), want: &message.InvalidError{Reason: "nested too deeply", Offset: 516, Limit: 512}},
		"far too deep":          {body: nested(1 << 20), want: &message.InvalidError{Reason: "nested too deeply", Offset: 516, Limit: 512}},
		"own depth":             {body: nested(3), limits: message.Limits{Depth: 2}, want: &message.InvalidError{Reason: "nested too deeply", Offset: 6, Limit: 2}},
		"largest":               {body: `{"a":1}`, limits: message.Limits{Bytes: 7}},
		"too large":             {body: `{"a":1}`, limits: message.Limits{Bytes: 6}, want: &message.InvalidError{Reason: "too large", Limit: 6, TooLarge: true}},
		"broken UTF-8":          {body: "{\"a\":\"\xff\"}", want: &message.InvalidError{Reason: "not valid UTF-8"}},
		"UTF-8 of a surrogate":  {body: "{\"a\":\"\xed\xa0\x80\"}", want: &message.InvalidError{Reason: "not valid UTF-8"}},
		"array":                 {body: `[{}]`, want: &message.InvalidError{Reason: "not a JSON object"}},
		"nothing":               {body: ``, want: &message.InvalidError{Reason: "not a JSON object"}},
		"byte order mark":       {body: "\ufeff{}", want: &message.InvalidError{Reason: "not a JSON object"}},
		"two objects":           {body: `{}{}`, want: &message.InvalidError{Reason: "text after the value", Offset: 2}},
		"NUL in a string":       {body: "{\"a\":\"\x00\"}", want: &message.InvalidError{Reason: "control character in a string", Offset: 6}},
		"NUL behind the object": {body: "{}\x00", want: &message.InvalidError{Reason: "text after the value", Offset: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := message.Check([]byte(tc.body), tc.limits)
			var got *message.InvalidError
			if err != nil && !errors.As(err, &got) {
				t.Fatalf("error of another type: %v", err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Check (-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzCheck(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":[1,{"b":"\ud83d\ude00"}]}`, `{"a":1e5,"a":-0}`, `{"a":"\x"}`, nested(20), "{\"a\":\"\xff\"}", `{"":[[],{}]}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got := message.Check(body, message.Limits{Bytes: 1 << 30, Depth: 1000}) == nil
		trimmed := strings.TrimLeft(string(body), " \t\r\n")
		want := json.Valid(body) && utf8.Valid(body) && strings.HasPrefix(trimmed, "{")
		if got != want {
			t.Fatalf("Check(%q) accepts: %v, want %v", body, got, want)
		}
		if _, err := message.Read(body); got && err != nil {
			t.Fatalf("Check accepts %q, Read does not: %v", body, err)
		}
	})
}
