package engine_test

import (
	"testing"
)

func TestWindowAsOfHasTheDialectOfItsTime(t *testing.T) {
	t.Parallel()
	b := setup(t)
	// Before the second message nothing tells that this is Anthropic's dialect,
	// in which a window begins with the user.
	b.ingest("k", `{"role":"assistant","content":"Hello, how can I help?"}`, `{"role":"user","content":"hi"}`)
	then := b.window("k", 1000)
	if len(then.Messages) != 2 {
		t.Fatalf("%d messages, want 2", len(then.Messages))
	}
	b.ingest("k", `{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"done"}]}`)
	if now := b.window("k", 1000); len(now.Messages) != 3 {
		t.Errorf("%d messages now, want 3", len(now.Messages))
	}
	again := b.windowAt("k", 1000, &then.Head)
	if text(again) != text(then) || *again.ContextProjection != *then.ContextProjection {
		t.Errorf("as of %d: %s, then %s", then.Head, text(again), text(then))
	}
}
