package tokens_test

import (
	"strings"
	"testing"

	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/tokens"
)

func TestMessage(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("AAAA", 1<<18) // 768 KiB decoded
	for name, tc := range map[string]struct {
		body     string
		min, max int
	}{
		"text":         {`{"role":"user","content":"hello world"}`, 6, 12},
		"call":         {`{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"exec","arguments":{"command":"ls -la"}}]}`, 20, 35},
		"result":       {`{"role":"tool","tool_call_id":"c","content":""}`, 10, 20},
		"note":         {`{"role":"compactionSummary","summary":"s"}`, 25, 40},
		"small image":  {`{"role":"user","content":[{"type":"image","mimeType":"image/png","data":"` + big[:1<<16] + `"}]}`, 800, 810},
		"medium image": {`{"role":"user","content":[{"type":"image","mimeType":"image/png","data":"` + big[:1<<19] + `"}]}`, 1600, 1610},
		"large image":  {`{"role":"user","content":[{"type":"image","mimeType":"image/png","data":"` + big + `"}]}`, 2400, 2410},
		"image by URL": {`{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://x/y.png"}}]}`, 1600, 1610},
		"reasoning":    {`{"role":"assistant","content":[{"type":"thinking","thinking":"` + strings.Repeat("word ", 100) + `"}]}`, 100, 120},
	} {
		m, err := message.Read([]byte(tc.body))
		if err != nil {
			t.Fatal(err)
		}
		if got := tokens.Message(m); got < tc.min || got > tc.max {
			t.Errorf("%s: %d tokens, want %d to %d", name, got, tc.min, tc.max)
		}
	}
}
