package compact

import (
	"context"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/engined/engined/internal/compact/summarize"
	"github.com/engined/engined/internal/events"
)

// drawnTree is a session's summaries: leaves of ten messages each, and merges of
// the newest roots, some of which a rule wrote.
func drawnTree(t *rapid.T) RedoInput {
	in := RedoInput{Epoch: 7, Summaries: map[int64]Written{}, FactorMilli: rapid.SampledFrom([]int{0, 800, 1000, 1500}).Draw(t, "factor")}
	var roots []int64
	seq := int64(1000)
	for i := range rapid.IntRange(1, 12).Draw(t, "leaves") {
		seq++
		from := int64(i*10 + 1)
		cover := []events.Range{{From: from, To: from + 9}}
		in.Summaries[seq] = Written{
			Seq: seq, Level: 1, Tokens: rapid.Int64Range(100, 400).Draw(t, "tokens"), SourceTokens: 4000, Sources: cover, Covers: cover,
			Degraded: rapid.Bool().Draw(t, "degraded"),
		}
		roots = append(roots, seq)
		if n := rapid.IntRange(0, 3).Draw(t, "merge"); n >= 2 && len(roots) >= n {
			seq++
			w := Written{Seq: seq, Tokens: 300, SourceTokens: 800, Degraded: rapid.Bool().Draw(t, "degraded")}
			for _, c := range roots[len(roots)-n:] {
				k := in.Summaries[c]
				w.Level = max(w.Level, k.Level+1)
				w.Children = append(w.Children, c)
				w.Covers = append(w.Covers, k.Covers...)
				w.Degraded = w.Degraded || k.Degraded
			}
			in.Summaries[seq] = w
			roots = append(roots[:len(roots)-n], seq)
		}
	}
	in.Live = roots
	for _, r := range roots {
		in.TokensBefore += calibrate(int(in.Summaries[r].Tokens), max(in.FactorMilli, 1))
	}
	if in.FactorMilli == 0 {
		in.TokensBefore = 0
		for _, r := range roots {
			in.TokensBefore += int(in.Summaries[r].Tokens)
		}
	}
	in.TokensBefore += rapid.IntRange(0, 5000).Draw(t, "messages")
	return in
}

func TestRedoProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := drawnTree(t)
		p, stop := NewRedo(in)
		owed := slices.ContainsFunc(in.Live, func(s int64) bool { return in.Summaries[s].Degraded })
		if owed == (stop != "") {
			t.Fatalf("owed %v, stop %q", owed, stop)
		}
		if stop != "" {
			return
		}
		if len(p.Live) != len(in.Live) || p.Epoch != in.Epoch || p.KeptTokens < 0 || p.KeptTokens > in.TokensBefore {
			t.Fatalf("%+v", p)
		}
		after := p.KeptTokens
		for i, n := range p.Live {
			was := in.Summaries[in.Live[i]]
			if was.Degraded != (n.Step > 0) || n.Step == 0 && n.Seq != was.Seq {
				t.Fatalf("%+v stands for %+v", n, was)
			}
			if n.Step > 0 {
				s := p.Steps[n.Step-1]
				after += calibrate(s.MaxTokens, p.FactorMilli)
				if s.Replaces != was.Seq || s.Level != was.Level || !slices.Equal(s.Covers, was.Covers) {
					t.Fatalf("%+v replaces %+v", s, was)
				}
			}
		}
		if after > in.TokensBefore {
			t.Fatalf("the window grows from %d to %d", in.TokensBefore, after)
		}
		for _, s := range p.Steps {
			if !in.Summaries[s.Replaces].Degraded {
				t.Fatalf("%+v writes a good summary anew", s)
			}
			for _, c := range s.Children {
				if c.Step >= s.ID || c.Step > 0 && p.Steps[c.Step-1].stage >= s.stage || c.Step == 0 && in.Summaries[c.Seq].Degraded {
					t.Fatalf("%+v has child %+v", s, c)
				}
			}
		}
	})
}

func TestPrepareWritesWholeChunksAlone(t *testing.T) {
	t.Parallel()
	in, _, drafts := runInput(t, 16000, willing())
	leaves := 0
	for _, s := range in.Plan.Steps {
		if len(s.Children) == 0 {
			leaves++
		}
	}
	made, err := Prepare(t.Context(), in)
	if err != nil || made != leaves-1 || drafts.len() != made {
		t.Fatalf("%d of %d leaves, %d drafts, %v", made, leaves, drafts.len(), err)
	}
	out, err := Run(t.Context(), in)
	if err != nil || out.Reused != made {
		t.Errorf("%d reused of %d, %v", out.Reused, made, err)
	}
}

func TestDegradedTextsAreMarkedAndNotKept(t *testing.T) {
	t.Parallel()
	in, _, drafts := runInput(t, 16000, willing())
	in.Summarizer = degrading{in.Summarizer}
	merges := 0
	for _, s := range in.Plan.Steps {
		if len(s.Children) > 0 {
			merges++
		}
	}
	out, err := Run(t.Context(), in)
	if err != nil || !out.Degraded() || drafts.len() != merges {
		t.Fatalf("%d drafts, %v", drafts.len(), err)
	}
	for _, s := range out.Summaries {
		if len(s.Children) > 0 && !s.Degraded {
			t.Errorf("%+v is made of what a rule wrote", s)
		}
	}
}

// degrading marks the leaves as a rule's.
type degrading struct{ summarize.Summarizer }

func (d degrading) Summarize(ctx context.Context, req summarize.Request) (summarize.Result, error) {
	res, err := d.Summarizer.Summarize(ctx, req)
	res.Degraded = len(req.Lines) > 0
	return res, err
}
