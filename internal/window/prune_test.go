package window

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/engined/engined/internal/message"
)

// working is an agent's session: a request, then rounds of one call each.
func working(rounds, result int) *testLog {
	l := &testLog{}
	l.user(50)
	for i := range rounds {
		id := fmt.Sprint("c", i)
		l.call(40, id)
		l.result(result, id)
	}
	l.say(60)
	return l
}

func pruneOf(p Plan) (trimmed, cleared []int64) {
	for _, it := range p.Items {
		switch it.Prune {
		case PruneTrim:
			trimmed = append(trimmed, it.Seq)
		case PruneClear:
			cleared = append(cleared, it.Seq)
		case PruneOff:
		}
	}
	return trimmed, cleared
}

func TestPruning(t *testing.T) {
	t.Parallel()
	l := working(12, 2000) // results are the odd seqs from 3 to 25; about 24,600 tokens
	for name, c := range map[string]struct {
		budget           int
		mode             PruneMode
		trimmed, cleared int
		label            string
	}{
		"off":                           {30_000, PruneOff, 0, 0, "1"},
		"little of a large budget":      {100_000, PruneClear, 0, 0, "1"},
		"trimming is enough":            {60_000, PruneClear, 9, 0, "1.p20000"},
		"only trimming":                 {30_000, PruneTrim, 9, 0, "1.p20000"},
		"as many as needed are cleared": {22_000, PruneClear, 5, 4, "1.p20000-9000"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := l.within(c.budget)
			in.Prune = Pruning{Mode: c.mode, StepTokens: 1000}
			p := Build(in)
			if err := check(in, p); err != nil {
				t.Fatal(err)
			}
			trimmed, cleared := pruneOf(p)
			if len(trimmed) != c.trimmed || len(cleared) != c.cleared || p.EpochLabel != c.label {
				t.Fatalf("trimmed %v, cleared %v, %s", trimmed, cleared, p.EpochLabel)
			}
			for _, it := range p.Items {
				if it.Prune != PruneOff && (it.Seq >= 21 || it.Tokens >= it.Whole) {
					t.Errorf("seq %d of %d tokens is pruned to %d", it.Seq, it.Whole, it.Tokens)
				}
				if (it.Prune != PruneOff) != strings.Contains(it.Reason.String(), "pruned") {
					t.Errorf("seq %d: %s", it.Seq, it.Reason)
				}
			}
		})
	}
}

// The point at which pruning ends moves in steps, and stays while a session grows
// by less.
func TestThePruningPointMovesInSteps(t *testing.T) {
	t.Parallel()
	l := working(60, 600)
	moves, last := 0, ""
	for n := range l.entries {
		in := l.within(20_000)
		in.Entries = l.entries[:n+1]
		in.Prune = Pruning{Mode: PruneTrim, TrimOver: 300, TrimTo: 200}
		if p := Build(in); p.EpochLabel != last {
			moves++
			last = p.EpochLabel
		}
	}
	// The path is 38,600 tokens long and the point moves by 4096.
	if moves < 5 || moves > 11 {
		t.Errorf("%d moves over %d entries", moves, len(l.entries))
	}
}

func TestPruningTouchesOldResultsAlone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := messyInput(t, 80)
		p := Build(in)
		entries := map[int64]Entry{}
		var assistants []int64
		for _, e := range in.Entries {
			entries[e.Seq] = e
			if e.Role == message.Assistant && !e.Flags.Has(message.Hidden) {
				assistants = append(assistants, e.Seq)
			}
		}
		for _, it := range p.Items {
			if it.Prune == PruneOff || it.Kind == KindSummary {
				continue
			}
			e := entries[it.Seq]
			if e.Role != message.Result || e.Flags&(message.HasImage|message.UserText) != 0 || it.CutTo >= e.Tokens {
				t.Fatalf("%+v of %+v is pruned", it, e)
			}
			n := len(assistants) - max(in.Prune.KeepAssistants, 1)
			if n < 0 || e.Seq > assistants[n] {
				t.Fatalf("seq %d is not older than the assistant messages kept, %v", e.Seq, assistants)
			}
		}
		in.Prune = Pruning{}
		shown := map[int64]bool{}
		for _, it := range p.Items {
			shown[it.Seq] = true
		}
		for _, it := range Build(in).Items {
			if !shown[it.Seq] {
				t.Fatalf("seq %d is shown without pruning only", it.Seq)
			}
		}
	})
}

func TestGoldenPrunedWindows(t *testing.T) {
	t.Parallel()
	for _, mode := range []PruneMode{PruneTrim, PruneClear} {
		t.Run(fmt.Sprint("openclaw-receipts-", mode), func(t *testing.T) {
			t.Parallel()
			l, bodies := readTranscript(t, filepath.Join("testdata", "openclaw-receipts.jsonl"))
			in := l.within(100_000)
			in.Dialect = message.OpenClaw
			in.Prune = Pruning{Mode: mode, KeepAssistants: 2, StepTokens: 100, TrimOver: 150, TrimTo: 100, TrimShare: 1, ClearShare: 1}
			p := Build(in)
			rendered, err := p.Render(Source{Bodies: bodies, Estimate: roughly})
			if err != nil {
				t.Fatal(err)
			}
			for i, it := range p.Items {
				if it.Prune == PruneOff {
					continue
				}
				if !json.Valid(rendered[i]) || !strings.Contains(string(rendered[i]), fmt.Sprintf("full text: event %d]", it.Seq)) {
					t.Errorf("%s", rendered[i])
				}
				again, err := p.Render(Source{Bodies: bodies, Estimate: roughly})
				if err != nil || !cmp.Equal(again[i], rendered[i]) {
					t.Errorf("another rendering: %s, %v", again[i], err)
				}
			}
			golden(t, describe(p, rendered))
		})
	}
}
