package transcripts_test

import (
	"testing"

	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/tokens"
)

// TestCalibrationForesees learns a factor from the first half of each recorded
// session whose replies tell the size of their prompts, and looks how well it
// foretells how the prompts of the second half grew.
func TestCalibrationForesees(t *testing.T) { foresee(t, bundled(t)) }

func TestLargeCalibrationForesees(t *testing.T) { foresee(t, large(t)) }

func foresee(t *testing.T, files []*file) {
	t.Helper()
	sessions := 0
	for _, f := range files {
		for _, c := range f.sessions {
			calls := callsOf(t, c)
			first, second := calls[:len(calls)/2], calls[len(calls)/2:]
			for model, factor := range tokens.Calibrate(first) {
				estimated, prompt := growth(second, model)
				if estimated < 5000 {
					continue
				}
				sessions++
				truth := prompt * 1000 / estimated
				t.Logf("%s %s: learned %d ‰, then prompts grew by %d ‰ of %d estimated tokens", c.key, model, factor, truth, estimated)
				if off := truth*1000/int64(factor) - 1000; off > 200 || max(off, -off) >= max(truth-1000, 1000-truth) {
					t.Errorf("%s: windows for %s would count %d ‰ too little; uncalibrated it were %d", c.key, model, off, truth-1000)
				}
			}
		}
	}
	if sessions == 0 {
		t.Skip("no session tells enough")
	}
}

func callsOf(t *testing.T, c *conversation) []tokens.Reported {
	t.Helper()
	var out []tokens.Reported
	var before int64
	for _, raw := range c.messages {
		m, err := message.Read(raw)
		if err != nil {
			t.Fatal(err)
		}
		if m.PromptTokens > 0 && m.Role == message.Assistant {
			out = append(out, tokens.Reported{Model: m.Model, Before: before, Prompt: int64(m.PromptTokens)})
		}
		if !m.Flags.Has(message.Hidden) {
			before += int64(tokens.Message(m))
		}
	}
	return out
}

// growth adds up how a model's prompts and their estimates grew from call to
// call, where the history only grew.
func growth(calls []tokens.Reported, model string) (estimated, prompt int64) {
	for i := 1; i < len(calls); i++ {
		a, b := calls[i-1], calls[i]
		if e, p := b.Before-a.Before, b.Prompt-a.Prompt; a.Model == model && b.Model == model && p > 0 && p < 3*e {
			estimated, prompt = estimated+e, prompt+p
		}
	}
	return estimated, prompt
}
