package compact

import (
	"context"
	"slices"
)

// Prepare writes drafts of those summaries of a plan that a later plan of the
// same session will want too: of whole chunks, which keep their edges while the
// session grows. It commits nothing and answers with the number of drafts at
// hand. After an error the drafts made until then stay.
func Prepare(ctx context.Context, in RunInput) (int, error) {
	in.Plan.Steps = lasting(in.Plan.Steps)
	if in.Parallel <= 0 {
		in.Parallel = 2
	}
	if in.Attempts <= 0 {
		in.Attempts = 1
	}
	r := &runner{RunInput: in, done: make(map[int]Summary, len(in.Plan.Steps))}
	err := r.runStage(ctx, 0)
	return len(r.done), err
}

// Early is the input as a preparation plans from it: at the soft threshold, as if
// what is to come before the hard one was there already.
func (in PlanInput) Early() PlanInput {
	in.Policy = in.Policy.WithDefaults()
	in.Ahead = share(in.Budget, in.Policy.Threshold-in.Policy.SoftThreshold)
	in.Policy.Threshold = in.Policy.SoftThreshold
	return in
}

// lasting are the first-level steps but the newest, whose chunk still grows.
func lasting(steps []Step) []Step {
	steps = slices.DeleteFunc(slices.Clone(steps), func(s Step) bool { return len(s.Children) > 0 })
	if n := len(steps); n > 0 {
		steps = steps[:n-1]
	}
	return steps
}
