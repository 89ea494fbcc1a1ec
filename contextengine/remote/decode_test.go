package remote

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
)

// FuzzSplit holds split to what encoding/json makes of the same array.
func FuzzSplit(f *testing.F) {
	for _, seed := range []string{
		`[]`, `[ ]`, `[{}]`, `[ {"a":[1,"]"]} , {} ]`, `["\\\"",","]`, `[1,-2.5e3,null,true]`, "[\n\"\\u005d\"\t,[[],[{}]]]", `["a\\"]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var want []json.RawMessage
		if b = bytes.TrimSpace(b); len(b) == 0 || b[0] != '[' || json.Unmarshal(b, &want) != nil {
			return
		}
		got, err := split(b, len(want))
		if err != nil || len(got) != len(want) {
			t.Fatalf("%q: %d items, %v, want %d", b, len(got), err, len(want))
		}
		for i := range want {
			if !bytes.Equal(got[i], want[i]) {
				t.Errorf("%q: item %d is %q, want %q", b, i, got[i], want[i])
			}
		}
		if _, err := split(b, len(want)-1); len(want) > 0 && !errors.As(err, new(*tooManyError)) {
			t.Errorf("%q: %v, want too many", b, err)
		}
	})
}

// FuzzWindow: whatever an engine answers, a window is objects, or an error.
func FuzzWindow(f *testing.F) {
	for _, seed := range []string{
		`{"messages":[],"estimatedTokens":0}`, `{"messages":[{}],"estimatedTokens":1,"overBudget":{"items":[{"seq":1}]}}`, `{"messages":null}`, `{}`,
		`{"messages":[1],"estimatedTokens":1}`, `{"MESSAGES":[{}],"messages":[],"estimatedTokens":-1}`, `{"messages":[{}],"explanation":[{}],"estimatedTokens":1}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		a := assembleAnswer{Messages: messageList{most: 10}}
		err := decode(opAssemble, body, &a)
		if err == nil {
			_, err = a.result()
		}
		if err != nil {
			if !errors.As(err, new(*ProtocolError)) {
				t.Errorf("%q: %T %v", body, err, err)
			}
			return
		}
		res, err := a.result()
		if err != nil || res.Messages == nil || res.EstimatedTokens < 0 || len(res.Messages) > 10 {
			t.Errorf("%q: %+v %v", body, res, err)
		}
		for _, m := range res.Messages {
			if !json.Valid(m) || !isObject(m) {
				t.Errorf("%q: message %q", body, m)
			}
		}
	})
}

// FuzzPath: a path means one key or none, and keys survive it.
func FuzzPath(f *testing.F) {
	for _, seed := range []string{"a", "../x", "a/b", "%2F", "🦞", "\x00", "\xff", "a b+c"} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, key, child string) {
		if at, ok := parsePath(sessionPath(key, opIngest)); !ok || at != (place{key: key, op: opIngest}) {
			t.Errorf("%q became %+v", key, at)
		}
		if at, ok := parsePath(childPath(key, child, opEnded)); !ok || at != (place{key: key, op: opEnded, child: child}) {
			t.Errorf("%q, %q became %+v", key, child, at)
		}
	})
}
