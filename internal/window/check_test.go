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
		checkNothingLost, checkWords, checkSize, checkPairs, checkNewestUser, checkFirst,
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
		if it.Kind == KindNotice {
			continue
		}
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

// speaks reports a message that holds words of the user.
func speaks(e Entry) bool {
	return !e.Flags.Has(message.Hidden) &&
		(e.Role == message.User || e.Role == message.Result && e.Flags.Has(message.UserText))
}

// checkWords: what a user said is left out for want of room, before the first
// user message, as a spent heartbeat, or for the time that a call is open, and
// never for the results beside it.
func checkWords(in Input, p Plan) error {
	bySeq := map[int64]Entry{}
	for _, e := range in.Entries {
		bySeq[e.Seq] = e
	}
	for _, lo := range p.LeftOut {
		e := bySeq[lo.Seq]
		if lo.Kind != KindMessage || !speaks(e) {
			continue
		}
		switch lo.Reason {
		case Trimmed, Leading, Held:
		case HeartbeatDone:
			if e.Role != message.User {
				return fmt.Errorf("words of the user in seq %d are left out as a heartbeat", lo.Seq)
			}
		default:
			return fmt.Errorf("words of the user in seq %d are left out: %s", lo.Seq, lo.Reason)
		}
	}
	for _, it := range p.Items {
		if e := bySeq[it.Seq]; it.WithoutResults && (!speaks(e) || e.Role != message.Result || it.CutTo != 0) {
			return fmt.Errorf("seq %d is shown without results", it.Seq)
		}
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
		if it.Kind != KindMessage {
			continue
		}
		e := bySeq[it.Seq]
		if e.Flags.Has(message.Hidden) {
			return fmt.Errorf("seq %d is hidden", e.Seq)
		}
		if it.CutTo > 0 && !e.Flags.Has(message.Cuttable) {
			return fmt.Errorf("seq %d is cut", e.Seq)
		}
		if e.Role != message.Result || it.WithoutResults {
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
			spoke := e.Role == message.User || e.Role == message.Assistant || nobodys(in.Entries, e)
			if e.Seq > head.Seq && spoke && !e.Flags.Has(message.Hidden) {
				return fmt.Errorf("call %d is dead since %d and shown", head.Seq, e.Seq)
			}
		}
	}
	return nil
}

// nobodys reports words of the user beside results of which one answers no call
// that was made before, or calls of several messages.
func nobodys(entries []Entry, e Entry) bool {
	if e.Role != message.Result || !speaks(e) {
		return false
	}
	owner := int64(0)
	for _, id := range e.Results {
		at := int64(0)
		for _, c := range entries {
			if c.Seq < e.Seq && slices.Contains(c.Calls, id) {
				if at = c.Seq; c.Flags.Has(message.Hidden) {
					at = 0
				}
			}
		}
		if at == 0 || owner != 0 && at != owner {
			return true
		}
		owner = at
	}
	return false
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
	withCall := false
	for _, e := range slices.Backward(in.Entries) {
		if !speaks(e) {
			continue
		}
		at := slices.IndexFunc(p.Items, func(it Item) bool { return it.Seq == e.Seq })
		held := slices.ContainsFunc(p.LeftOut, func(lo LeftOut) bool { return lo.Seq == e.Seq && lo.Reason == Held })
		switch {
		case at < 0 && e.Role == message.Result && (held || withCall):
			// Where the call before it is open, the words before that count
			// meanwhile. Older words beside a result go with their call.
		case at < 0:
			return fmt.Errorf("newest user message %d is not shown", e.Seq)
		case e.Role == message.User || p.Items[at].WithoutResults:
			return nil
		default:
			withCall = true
		}
	}
	return nil
}

// checkFirst: in Anthropic's dialect the user begins, or the engine does where
// no user is on the path.
func checkFirst(in Input, p Plan) error {
	for i, it := range p.Items {
		if it.Kind != KindNotice {
			continue
		}
		said := slices.ContainsFunc(in.Entries, func(e Entry) bool {
			return e.Role == message.User && !e.Flags.Has(message.Hidden) || nobodys(in.Entries, e)
		})
		if i > 0 || len(p.Items) == 1 || said || in.Dialect != message.Anthropic || len(p.Summaries) > 0 {
			return fmt.Errorf("a notice at %d of %d", i, len(p.Items))
		}
	}
	if in.Dialect != message.Anthropic || len(p.Items) == 0 || p.Items[0].Kind != KindMessage {
		return nil
	}
	for _, e := range in.Entries {
		if e.Seq == p.Items[0].Seq && e.Role != message.User && !p.Items[0].WithoutResults {
			return fmt.Errorf("begins with seq %d, which is not the user's", e.Seq)
		}
	}
	return nil
}
