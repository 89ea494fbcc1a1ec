package message

import (
	"errors"
	"testing"
)

func TestValidateRefusesWhatIsNoMessage(t *testing.T) {
	t.Parallel()
	tests := []struct{ body, reason string }{
		{`{"content":"x"}`, "role: missing"},
		{`{}`, "role: missing"},
		{`{"role":null,"content":"x"}`, "role: missing"},
		{`{"role":"","content":"x"}`, "role: missing"},
		{`{"role":5,"content":"x"}`, "role: not a string"},
		{`{"role":["user"]}`, "role: not a string"},
		{`{"role":"user","content":5}`, "content: neither text nor a list of blocks"},
		{`{"role":"assistant","content":true}`, "content: neither text nor a list of blocks"},
		{`{"role":"tool","tool_call_id":"a","content":{"a":1}}`, "content: neither text nor a list of blocks"},
		{`{"role":"toolResult","content":"x","content":-1}`, "content: neither text nor a list of blocks"},
		{`{"role":"system","content":"x"}`, ""},
		{`{"role":"user","role":null,"content":[]}`, ""},
		{`{"role":"assistant","content":null,"tool_calls":[]}`, ""},
		{`{"role":"assistant"}`, ""},
		{`{"role":"martian","content":5}`, ""},
		{`{"role":"bashExecution","command":"ls"}`, ""},
		{`{"r\u006fle":"us\u0065r","content":7,"content":"x"}`, ""},
	}
	for _, tt := range tests {
		err := Validate([]byte(tt.body))
		var bad *InvalidError
		switch {
		case tt.reason == "" && err != nil:
			t.Errorf("%s: %v", tt.body, err)
		case tt.reason != "" && (!errors.As(err, &bad) || bad.Reason != tt.reason):
			t.Errorf("%s: %v, want %s", tt.body, err, tt.reason)
		}
	}
}

func TestWhatNoModelTakesIsHidden(t *testing.T) {
	t.Parallel()
	tests := []struct {
		body   string
		hidden bool
	}{
		{`{"role":"martian","content":"x"}`, true},
		{`{"content":"x"}`, true},
		{`{"role":"custom","content":"x"}`, false},
		{`{"role":"bashExecution","command":"ls","output":"a"}`, false},
		{`{"role":"branchSummary","summary":"x"}`, false},
		{`{"role":"compactionSummary","summary":"x"}`, false},
		{`{"role":"assistant","content":[{"type":"tool_use","name":"f","input":{}}]}`, true},
		{`{"role":"assistant","content":"x","tool_calls":[{"id":"","type":"function","function":{"name":"f","arguments":"{}"}}]}`, true},
		{`{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}`, false},
		{`{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}`, false},
	}
	for _, tt := range tests {
		m, err := Read([]byte(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Flags.Has(Hidden); got != tt.hidden {
			t.Errorf("%s: hidden is %v", tt.body, got)
		}
	}
}
