package tokens_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/engined/engined/internal/tokens"
)

// grow makes calls whose prompts grow by ratio times the estimate, beside a
// fixed overhead.
func grow(model string, n int, each, overhead int64, ratio float64) []tokens.Reported {
	out := make([]tokens.Reported, n)
	for i := range out {
		before := int64(i+1) * each
		out[i] = tokens.Reported{Model: model, Before: before, Prompt: overhead + int64(float64(before)*ratio)}
	}
	return out
}

func TestCalibrate(t *testing.T) {
	t.Parallel()
	mixed := append(grow("a", 10, 1000, 9000, 1.25), grow("b", 10, 1000, 500, 1.6)...)
	var split []tokens.Reported // each call told by two parts of its reply
	for _, c := range grow("a", 10, 1000, 9000, 1.25) {
		split = append(split, c, tokens.Reported{Model: c.Model, Before: c.Before + 400, Prompt: c.Prompt})
	}
	cleared := grow("a", 12, 1000, 9000, 1.2)
	for i := 6; i < 12; i++ {
		cleared[i].Prompt -= 4000 // the host cut something: one negative growth
	}
	bigger := grow("a", 12, 1000, 9000, 1.2)
	for i := 6; i < 12; i++ {
		bigger[i].Prompt += 20000 // tools came along: one odd growth
	}
	cut := grow("a", 12, 1000, 9000, 1.2)
	for i := range cut { // at every other call a large result of which prompts hold a little
		cut[i].Before += int64(i+1) / 2 * 20000
		cut[i].Prompt += int64(i+1) / 2 * 3000
		cut[i].Less = i%2 == 1
	}
	for name, tc := range map[string]struct {
		calls []tokens.Reported
		want  map[string]int
	}{
		"a window cuts results":      {cut, map[string]int{"a": 1200}},
		"nothing":                    {nil, map[string]int{}},
		"what hosts add cancels":     {grow("a", 10, 1000, 30000, 1.25), map[string]int{"a": 1250}},
		"by model":                   {mixed, map[string]int{"a": 1250, "b": 1600}},
		"too few":                    {grow("a", 4, 1000, 0, 1.25), map[string]int{}},
		"too small":                  {grow("a", 40, 50, 0, 1.25), map[string]int{}},
		"too little in all":          {grow("a", 6, 300, 0, 1.25), map[string]int{}},
		"a reply in parts":           {split, map[string]int{"a": 1250}},
		"never lowers":               {grow("a", 10, 1000, 0, 0.7), map[string]int{"a": 1000}},
		"never beyond the bound":     {grow("a", 10, 1000, 0, 2.9), map[string]int{"a": 2500}},
		"a cut by the host":          {cleared, map[string]int{"a": 1200}},
		"more tools in the middle":   {bigger, map[string]int{"a": 1200}},
		"rounded up to its own step": {grow("a", 10, 1000, 0, 1.234), map[string]int{"a": 1240}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, tokens.Calibrate(tc.calls)); diff != "" {
				t.Errorf("factors (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCalibrateCoversThreeQuarters(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(10, 60).Draw(t, "calls")
		calls := []tokens.Reported{{Model: "m", Before: 0, Prompt: rapid.Int64Range(1, 50000).Draw(t, "overhead")}}
		var within, total float64
		type growth struct{ estimated, prompt int64 }
		var all []growth
		for range n {
			last := calls[len(calls)-1]
			g := growth{rapid.Int64Range(200, 5000).Draw(t, "estimated"), 0}
			g.prompt = g.estimated * rapid.Int64Range(1000, 2400).Draw(t, "milli") / 1000
			all = append(all, g)
			calls = append(calls, tokens.Reported{Model: "m", Before: last.Before + g.estimated, Prompt: last.Prompt + g.prompt})
		}
		f, ok := tokens.Calibrate(calls)["m"]
		if !ok {
			t.Skip("too little was seen")
		}
		for _, g := range all {
			total += float64(g.estimated)
			if float64(g.prompt) <= float64(g.estimated)*float64(f)/1000+1 {
				within += float64(g.estimated)
			}
		}
		if within < total*0.75 {
			t.Fatalf("factor %d holds for %.0f of %.0f tokens", f, within, total)
		}
	})
}

func TestPrior(t *testing.T) {
	t.Parallel()
	for model, want := range map[string]int{"": 1000, "gpt-5": 1000, "anthropic/Claude-Sonnet-4-5": 1300, "claude-opus-4-5": 1300} {
		if got := tokens.Prior(model); got != want {
			t.Errorf("prior of %q is %d, want %d", model, got, want)
		}
	}
}
