package window

import (
	"fmt"
	"slices"

	"github.com/engined/engined/internal/message"
)

// check holds a plan against the rules of a strict provider and against what
// the service promises. It shares no code with the planner.
func check(in Input, p Plan) error {
	for _, rule := range []func(Input, Plan) error{
		checkNothingLost, checkSize, checkPairs, checkNewestUser, checkFirst,
	} {
		if err := rule(in, p); err != nil {
			return err
		}
	}
	return nil
}

func checkNothingLost(in Input, p Plan) error {
	count := map[int64]int{}
	for _, it := range p.Items {
		count[it.Seq]++
	}
	for _, lo := range p.LeftOut {
		count[lo.Seq]++
		if lo.Reason.String() == "unknown" {
			return fmt.Errorf("seq %d is left out without a reason", lo.Seq)
		}
	}
	want := len(in.Entries) + len(in.Summaries)
	for _, e := range in.Entries {
		if count[e.Seq] != 1 {
			return fmt.Errorf("seq %d is reported %d times", e.Seq, count[e.Seq])
		}
	}
	for _, s := range in.Summaries {
		if count[s.Seq] != 1 {
			return fmt.Errorf("summary %d is reported %d times", s.Seq, count[s.Seq])
		}
	}
	if len(count) != want {
		return fmt.Errorf("%d things reported of %d", len(count), want)
	}
	return nil
}

func checkSize(in Input, p Plan) error {
	sum := 0
	for _, it := range p.Items {
		sum += it.Tokens
	}
	if sum != p.Tokens {
		return fmt.Errorf("tokens %d, items hold %d", p.Tokens, sum)
	}
	if (sum > in.Budget) != (p.Over != nil) {
		return fmt.Errorf("%d of %d tokens, over = %v", sum, in.Budget, p.Over)
	}
	if p.Over != nil && (p.Over.Needed != sum || len(p.Over.Items) != len(p.Items)) {
		return fmt.Errorf("over says %+v of %d tokens", *p.Over, sum)
	}
	showable := slices.ContainsFunc(in.Entries, func(e Entry) bool {
		return !e.Flags.Has(message.Hidden) && e.Role == message.User
	})
	if showable && len(p.Items) == 0 {
		return fmt.Errorf("empty window")
	}
	return nil
}

// checkPairs walks the window as a provider does.
func checkPairs(in Input, p Plan) error {
	bySeq := map[int64]Entry{}
	for _, e := range in.Entries {
		bySeq[e.Seq] = e
	}
	var head Entry
	var open []string
	for _, it := range p.Items {
		if it.Kind == KindSummary {
			continue
		}
		e := bySeq[it.Seq]
		if e.Flags.Has(message.Hidden) {
			return fmt.Errorf("seq %d is hidden", e.Seq)
		}
		if it.CutTo > 0 && !e.Flags.Has(message.Cuttable) {
			return fmt.Errorf("seq %d is cut", e.Seq)
		}
		if e.Role != message.Result {
			if len(open) > 0 {
				return fmt.Errorf("seq %d stands before the results %v of seq %d", e.Seq, open, head.Seq)
			}
			if e.Role == message.Assistant {
				head, open = e, slices.Clone(e.Calls)
			}
			continue
		}
		if e.Seq < head.Seq {
			return fmt.Errorf("result %d answers the later call %d", e.Seq, head.Seq)
		}
		for _, id := range e.Results {
			i := slices.Index(open, id)
			if i < 0 {
				return fmt.Errorf("result %d answers %q, open are %v of seq %d", e.Seq, id, open, head.Seq)
			}
			open = slices.Delete(open, i, i+1)
			if between := laterCall(in.Entries, head.Seq, e.Seq, id); between != 0 {
				return fmt.Errorf("result %d belongs to call %d, not %d", e.Seq, between, head.Seq)
			}
		}
	}
	if len(open) > 0 {
		for _, e := range in.Entries {
			spoke := e.Role == message.User || e.Role == message.Assistant
			if e.Seq > head.Seq && spoke && !e.Flags.Has(message.Hidden) {
				return fmt.Errorf("call %d is dead since %d and shown", head.Seq, e.Seq)
			}
		}
	}
	return nil
}

func laterCall(entries []Entry, after, before int64, id string) int64 {
	for _, e := range entries {
		if e.Seq > after && e.Seq < before && slices.Contains(e.Calls, id) {
			return e.Seq
		}
	}
	return 0
}

func checkNewestUser(in Input, p Plan) error {
	for _, e := range slices.Backward(in.Entries) {
		if e.Role != message.User || e.Flags.Has(message.Hidden) {
			continue
		}
		if !slices.ContainsFunc(p.Items, func(it Item) bool { return it.Seq == e.Seq }) {
			return fmt.Errorf("newest user message %d is not shown", e.Seq)
		}
		return nil
	}
	return nil
}

func checkFirst(in Input, p Plan) error {
	if in.Dialect != message.Anthropic || len(p.Items) == 0 || p.Items[0].Kind == KindSummary {
		return nil
	}
	for _, e := range in.Entries {
		if e.Seq != p.Items[0].Seq || e.Role == message.User {
			continue
		}
		if slices.ContainsFunc(in.Entries, func(e Entry) bool {
			return e.Role == message.User && !e.Flags.Has(message.Hidden)
		}) {
			return fmt.Errorf("begins with seq %d, which is not the user's", e.Seq)
		}
	}
	return nil
}
