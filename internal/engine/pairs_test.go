package engine_test

import (
	"encoding/json"
	"testing"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/tokens"
)

func rawMessages(raws ...string) []json.RawMessage {
	out := make([]json.RawMessage, len(raws))
	for i, r := range raws {
		out[i] = json.RawMessage(r)
	}
	return out
}

// pairs holds a window to the rule of calls and results: each call is answered
// before anybody else speaks, and no result answers nothing. The last call may
// be open.
func pairs(t testing.TB, res contextengine.AssembleResult) {
	t.Helper()
	open := map[string]bool{}
	for i, raw := range res.Messages {
		m, err := message.Read(raw)
		if err != nil {
			continue // a summary
		}
		f := m.Facts(tokens.Message)
		for _, id := range f.Results {
			if !open[id] {
				t.Errorf("message %d answers %q, which nobody asked: %s", i, id, text(res))
			}
			delete(open, id)
		}
		if (f.Role == message.User || f.Role == message.Assistant) && len(open) > 0 {
			t.Errorf("message %d comes before the answers to %v", i, open)
		}
		for _, id := range f.Calls {
			open[id] = true
		}
	}
}
