package compact

import "github.com/engined/engined/internal/events"

// Written is a summary of the log, as far as writing it anew depends on it.
type Written struct {
	Seq, Tokens, SourceTokens int64
	Level                     int
	Sources, Covers           []events.Range
	Children                  []int64
	Degraded                  bool
}

// RedoInput is all that a redo depends on.
type RedoInput struct {
	Epoch int64
	// Live are the seqs of the live summaries, oldest first; Summaries holds them
	// and whatever degraded ones lie under them.
	Live      []int64
	Summaries map[int64]Written
	// TokensBefore is the window now, calibrated.
	TokensBefore int
	FactorMilli  int
}

// NewRedo plans to write the degraded summaries anew, from the same sources and
// within the tokens that they take, so the window never grows by it. Under a
// degraded summary only what is degraded itself is written again. It is pure.
func NewRedo(in RedoInput) (Plan, Stop) {
	factor := in.FactorMilli
	if factor <= 0 {
		factor = 1000
	}
	r := redo{in: in, done: map[int64]int{}}
	p := Plan{Epoch: in.Epoch, Redo: true, TokensBefore: in.TokensBefore, KeptTokens: in.TokensBefore, TokensAfterMax: in.TokensBefore, FactorMilli: factor}
	for _, seq := range in.Live {
		n := r.visit(seq)
		p.Live = append(p.Live, n)
		if n.Step == 0 {
			p.KeepLive = append(p.KeepLive, seq)
			continue
		}
		p.KeptTokens -= calibrate(int(in.Summaries[seq].Tokens), factor)
	}
	if len(r.steps) == 0 {
		return Plan{}, StopNothing
	}
	p.Steps = r.steps
	return p, ""
}

type redo struct {
	in    RedoInput
	steps []Step
	// done has the step of each summary that is visited.
	done map[int64]int
}

// visit answers with what stands for a summary afterwards.
func (r *redo) visit(seq int64) Node {
	w, ok := r.in.Summaries[seq]
	if !ok || !w.Degraded {
		return Node{Seq: seq}
	}
	if id, ok := r.done[seq]; ok {
		return Node{Step: id}
	}
	s := Step{
		Replaces: seq, Level: w.Level, Sources: w.Sources, Covers: w.Covers,
		SourceTokens: int(w.SourceTokens), MaxTokens: int(w.Tokens),
	}
	for _, rng := range w.Sources {
		for n := rng.From; n <= rng.To; n++ {
			s.SourceSeqs = append(s.SourceSeqs, n)
		}
	}
	for _, c := range w.Children {
		n := r.visit(c)
		s.Children = append(s.Children, n)
		if n.Step > 0 {
			s.stage = max(s.stage, r.steps[n.Step-1].stage+1)
		}
	}
	s.ID = len(r.steps) + 1
	r.steps = append(r.steps, s)
	r.done[seq] = s.ID
	return Node{Step: s.ID}
}
