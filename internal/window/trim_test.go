package window

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/engined/engined/internal/message"
)

// grow appends turns of the given size and counts how often the window's
// prefix changes once it is full, how often it does so in two turns running,
// and how many tokens were appended meanwhile.
func grow(budget, turns int, size func() int) (changes, running, tokens int) {
	l := &testLog{}
	before, changed := Plan{}, false
	for range turns {
		start := l.offset
		l.user(size())
		l.call(size(), "c")
		l.result(size(), "c")
		l.say(size())
		in := l.within(budget)
		p := Build(in)
		if p.TrimFrom == 0 {
			continue
		}
		tokens += int(l.offset - start)
		now := before.EpochLabel != p.EpochLabel || before.Fingerprint != p.Fingerprint
		if now {
			changes++
			if changed {
				running++
			}
		}
		before, changed = p, now
	}
	return changes, running, tokens
}

func TestThePrefixChangesRarely(t *testing.T) {
	t.Parallel()
	for _, budget := range []int{4000, 8192, 10000, 16384, 32000, 50000, 65536, 100000, 128000, 200000} {
		random := rand.New(rand.NewPCG(1, uint64(budget)))
		// A turn of four messages is about a fortieth of the budget.
		size := func() int { return 1 + random.IntN(budget/80) }
		changes, running, tokens := grow(budget, 300, size)
		if changes == 0 {
			t.Fatalf("budget %d: never trimmed", budget)
		}
		step := float64(tokens) / float64(changes) / float64(budget)
		t.Logf("budget %d: %d changes in 300 turns, %d of them running, %.2f of the budget apart", budget, changes, running, step)
		if step < 0.25 {
			t.Errorf("budget %d: the prefix moves each %.2f of the budget", budget, step)
		}
	}
}

// TestRealTranscripts replays whole transcripts, message by message, at
// several budgets.
func TestRealTranscripts(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("ENGINED_TRANSCRIPTS")
	if dir == "" {
		t.Skip("ENGINED_TRANSCRIPTS names no directory of transcripts")
	}
	var files []string
	for _, pattern := range []string{"pi/*.jsonl", "openclaw/*.jsonl", "claude-code/*.jsonl"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			l, bodies := readTranscript(t, file)
			dialect := message.OpenClaw
			if filepath.Base(filepath.Dir(file)) == "claude-code" {
				dialect = message.Anthropic
			}
			for _, budget := range []int{2000, 16000, 128000} {
				replay(t, l, bodies, budget, dialect)
			}
		})
	}
}

func replay(t *testing.T, l *testLog, bodies map[int64][]byte, budget int, dialect message.Dialect) {
	t.Helper()
	in := l.within(budget)
	in.Dialect = dialect
	changes, turns, over := 0, 0, 0
	seen := map[string]Plan{}
	before := Plan{}
	for n := range len(l.entries) + 1 {
		part := in
		part.Entries = l.entries[:n]
		p := Build(part)
		if err := check(part, p); err != nil {
			t.Fatalf("budget %d, after %d: %v", budget, n, err)
		}
		key := p.EpochLabel + " " + p.Fingerprint
		if earlier, ok := seen[key]; ok && !prefix(earlier, p) {
			t.Fatalf("budget %d, after %d: not a prefix", budget, n)
		}
		seen[key] = p
		if p.Over != nil {
			over++
		}
		if before.EpochLabel != p.EpochLabel || before.Fingerprint != p.Fingerprint {
			changes++
		}
		if n > 0 && l.entries[n-1].Role == message.Assistant {
			turns++
		}
		before = p
	}
	if _, err := before.Render(Source{Bodies: bodies, Estimate: roughly}); err != nil {
		t.Fatal(err)
	}
	t.Logf("budget %d: %d entries, %d changes in %d model calls, over budget %d times; last window %d messages, %d tokens",
		budget, len(l.entries), changes, turns, over, len(before.Items), before.Tokens)
}
