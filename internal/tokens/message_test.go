package tokens_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

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

func TestCalibrate(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ reported, estimated, previous, want int }{
		{0, 5000, 0, 1000},
		{0, 5000, 1300, 1300},
		{5000, 0, 1300, 1300},
		{5000, 999, 1300, 1300},
		{5000, 5000, 0, 1000},
		{4000, 5000, 0, 1000},
		{6000, 5000, 1000, 1200},
		{6001, 5000, 1000, 1201},
		{90000, 5000, 1000, 4000},
		{5000, 5000, 1200, 1100},
		{5000, 5000, 1001, 1001},
		{1 << 62, 5000, 1000, 4000},
	} {
		if got := tokens.Calibrate(tc.reported, tc.estimated, tc.previous); got != tc.want {
			t.Errorf("Calibrate(%d, %d, %d) = %d, want %d", tc.reported, tc.estimated, tc.previous, got, tc.want)
		}
	}
}

func TestCalibrationCoversTheReport(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		estimated := rapid.IntRange(1000, 1<<20).Draw(t, "estimated")
		reported := rapid.IntRange(1, estimated*4).Draw(t, "reported")
		f := tokens.Calibrate(reported, estimated, rapid.IntRange(0, 5000).Draw(t, "previous"))
		if f < tokens.FactorMin || f > tokens.FactorMax {
			t.Fatalf("factor %d", f)
		}
		if got := tokens.Apply(estimated, f); got < reported {
			t.Fatalf("factor %d makes %d of %d, reported were %d", f, got, estimated, reported)
		}
	})
}

func TestApply(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ n, f, want int }{{0, 2000, 0}, {10, 0, 10}, {10, 500, 10}, {10, 1001, 11}, {10, 1500, 15}, {10, 9000, 40}} {
		if got := tokens.Apply(tc.n, tc.f); got != tc.want {
			t.Errorf("Apply(%d, %d) = %d, want %d", tc.n, tc.f, got, tc.want)
		}
	}
}
