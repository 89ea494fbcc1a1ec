package message

import (
	"bytes"
	"errors"
	"testing"
)

func TestWithoutResultsKeepsAllElseByteForByte(t *testing.T) {
	t.Parallel()
	const result = `{"type":"tool_result","tool_use_id":"a","content":"out"}`
	tests := []struct{ name, body, want string }{
		{
			"result first", `{"role":"user","content":[` + result + `,{"type":"text","text":"hi"}]}`,
			`{"role":"user","content":[{"type":"text","text":"hi"}]}`,
		},
		{
			"result last", `{"role":"user", "content" : [ {"text":"\u0068i", "type":"text"} , ` + result + ` ], "x":1.50e+2}`,
			`{"role":"user", "content" : [ {"text":"\u0068i", "type":"text"} ], "x":1.50e+2}`,
		},
		{
			"between", `{"content":["a",` + result + `, {"type":"text","text":"b"}` + "\n," + result + `, 1.0 ],"role":"user"}`,
			`{"content":["a", {"type":"text","text":"b"}, 1.0 ],"role":"user"}`,
		},
		{
			"the last content counts", `{"content":[` + result + `],"role":"user","content":[` + result + `,"b"]}`,
			`{"content":[` + result + `],"role":"user","content":["b"]}`,
		},
		{
			"escaped names", `{"role":"user","c\u006fntent":[{"t\u0079pe":"tool\u005fresult"},"b"]}`,
			`{"role":"user","c\u006fntent":["b"]}`,
		},
		{"none", `{"role":"user","content":[ "b" ]}`, `{"role":"user","content":[ "b" ]}`},
		{"a string", `{"role":"user","content":"b"}`, `{"role":"user","content":"b"}`},
		{"no content", `{"role":"user"}`, `{"role":"user"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := WithoutResults([]byte(tt.body))
			if err != nil || string(got) != tt.want {
				t.Errorf("got %s, %v\nwant %s", got, err, tt.want)
			}
		})
	}
	if _, err := WithoutResults([]byte(`{"role":"user","content":[` + result + `]}`)); !errors.Is(err, ErrNothingLeft) {
		t.Errorf("of results only: %v", err)
	}
	var bad *InvalidError
	if _, err := WithoutResults([]byte(`{"role":`)); !errors.As(err, &bad) {
		t.Errorf("of half a message: %v", err)
	}
}

// FuzzWithoutResults: what Read says is the user's is all that stays.
func FuzzWithoutResults(f *testing.F) {
	f.Add([]byte(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"x"},{"type":"text","text":"hi"}]}`))
	f.Add([]byte(`{"role":"user","content":["a",{"type":"tool_result"},null,{"type":null,"type":"tool_result"}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		before, err := Read(body)
		if err != nil || before.Role != Result || !before.Flags.Has(UserText) {
			return
		}
		got, err := WithoutResults(bytes.Clone(body))
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		after, err := Read(got)
		if err != nil {
			t.Fatalf("%s: %v", got, err)
		}
		if after.Role != User || after.Flags.Has(Hidden) && !before.Flags.Has(Hidden) {
			t.Fatalf("%s became %s: role %d, flags %b", body, got, after.Role, after.Flags)
		}
	})
}
