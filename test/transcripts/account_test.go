package transcripts_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/engined/engined/contextengine"
)

// accounted: each message of the path is shown, covered by a summary that is
// shown, or told to be left out; never two of them, and the count is right.
func accounted(j *journal, w *seen) error {
	fate := map[int64]string{}
	settle := func(seq int64, as string) error {
		if was, twice := fate[seq]; twice {
			return fmt.Errorf("event %d is %s and %s", seq, was, as)
		}
		fate[seq] = as
		return nil
	}
	leftOut := 0
	for _, e := range w.res.Explanation[w.notices:] {
		if e.Kind == "message" {
			as := "shown"
			if !e.Shown {
				as = "left out"
				leftOut++
			}
			if err := settle(e.Seq, as); err != nil {
				return err
			}
			continue
		}
		under, err := j.leaves(e.Seq)
		if err != nil {
			return err
		}
		if !e.Shown {
			leftOut += len(under)
		}
		for _, seq := range under {
			if err := settle(seq, "covered"); err != nil {
				return err
			}
		}
	}
	for _, seq := range j.live {
		if !slices.ContainsFunc(w.res.Explanation, func(e contextengine.Explanation) bool { return e.Seq == seq }) {
			return fmt.Errorf("the live summary %d is not reported", seq)
		}
	}
	for _, seq := range j.seqs {
		if _, ok := fate[seq]; !ok && seq <= w.res.Head {
			return fmt.Errorf("event %d is neither shown nor covered nor left out", seq)
		}
	}
	if leftOut != w.res.LeftOut {
		return fmt.Errorf("%d messages are left out, the answer says %d", leftOut, w.res.LeftOut)
	}
	return nil
}

// reasons: what the answer says of each message left out is so.
func reasons(j *journal, w *seen) error {
	oldest := int64(1 << 62)
	for _, e := range w.res.Explanation {
		if e.Shown && e.Kind == "message" && e.Reason == "among the newest messages that fit" {
			oldest = min(oldest, e.Seq)
		}
	}
	for _, e := range w.res.Explanation {
		if e.Shown || e.Kind != "message" {
			continue
		}
		m := &j.read[j.index[e.Seq]]
		ok := false
		switch {
		case strings.HasPrefix(e.Reason, "older than"):
			// A result is as old as its call, which stands before it.
			ok = e.Seq < oldest || m.role == "result"
			w.trimmed++
		case strings.HasPrefix(e.Reason, "excluded"):
			ok = !m.showable()
		case strings.HasPrefix(e.Reason, "tool call that was never answered"):
			ok = len(m.calls) > 0 && !j.answered(e.Seq, m) || m.role == "result"
		case strings.HasPrefix(e.Reason, "tool result without its call"), strings.HasPrefix(e.Reason, "a newer result"):
			ok = m.role == "result"
		case strings.HasPrefix(e.Reason, "heartbeat"):
			ok = len(m.calls) == 0
		case strings.HasPrefix(e.Reason, "logged while"):
			ok = m.role == "note" || m.role == "system"
		case strings.HasPrefix(e.Reason, "before the first user"):
			ok = j.dialect == anthropic && e.Seq < j.newestUser(w.res.Head)
		}
		if !ok {
			return fmt.Errorf("event %d (%s) is left out: %q is not so", e.Seq, m.role, e.Reason)
		}
	}
	return nil
}

// answered: each call has a result before its id is called again.
func (j *journal) answered(call int64, m *said) bool {
	open := map[string]bool{}
	for _, c := range m.calls {
		open[c.id] = true
	}
	for i := j.index[call] + 1; i < len(j.seqs) && len(open) > 0; i++ {
		for _, id := range j.read[i].results {
			delete(open, id)
		}
		for _, c := range j.read[i].calls {
			if open[c.id] {
				return false
			}
		}
	}
	return len(open) == 0
}

// fits: the estimate is within the budget, or the answer says what is not and
// shows nothing beside what must be shown; and while messages are left out for
// want of room, at least half of it is used.
func fits(j *journal, w *seen) error {
	res := &w.res
	sum := 0
	for _, e := range res.Explanation {
		if e.Shown {
			sum += e.Tokens
		}
	}
	if sum != res.EstimatedTokens {
		return fmt.Errorf("estimated %d, the items %d", res.EstimatedTokens, sum)
	}
	w.over = res.OverBudget != nil
	if w.over != (res.EstimatedTokens > w.budget) {
		return fmt.Errorf("%d of %d tokens, overBudget %v", res.EstimatedTokens, w.budget, res.OverBudget)
	}
	if w.over {
		if res.OverBudget.Needed != res.EstimatedTokens || len(res.OverBudget.Items) != w.notices+len(w.seqs) {
			return fmt.Errorf("overBudget says %+v of %d tokens", res.OverBudget, res.EstimatedTokens)
		}
		return j.onlyWhatMust(w)
	}
	if w.trimmed > 0 && 2*res.EstimatedTokens < w.budget {
		w.underused = true
		if next := j.nextOlder(w); res.EstimatedTokens+next <= w.budget {
			return fmt.Errorf("%d of %d tokens are used, %d messages left out, and the next has %d", res.EstimatedTokens, w.budget, w.trimmed, next)
		}
	}
	return nil
}

// onlyWhatMust: the newest user message, the newest answer's calls, and results
// that the model has not read yet, with their calls.
func (j *journal) onlyWhatMust(w *seen) error {
	if w.summaries > 0 {
		return fmt.Errorf("over budget with %d summaries", w.summaries)
	}
	last := int64(-1)
	for i, seq := range j.seqs {
		if m := &j.read[i]; seq <= w.res.Head && m.role == "assistant" && m.showable() {
			last = seq
		}
	}
	must := map[int64]bool{j.newestUser(w.res.Head): true, last: true}
	group := int64(0)
	for _, seq := range w.seqs {
		if j.read[j.index[seq]].role != "result" {
			group = seq
		} else if seq > last {
			must[group] = true
		}
	}
	for _, seq := range w.seqs {
		if m := &j.read[j.index[seq]]; m.role != "result" && !must[seq] {
			return fmt.Errorf("over budget and event %d (%s) is shown", seq, m.role)
		}
	}
	return nil
}

// nextOlder is what the newest message left out for want of room would take:
// it, the results of its calls and, where an Anthropic window would begin with
// it, the user message of its turn.
func (j *journal) nextOlder(w *seen) int {
	size, at, turn := 0, int64(-1), 0
	for _, e := range w.res.Explanation {
		if e.Shown || e.Kind != "message" || !strings.HasPrefix(e.Reason, "older than") {
			continue
		}
		role := j.read[j.index[e.Seq]].role
		if role != "result" {
			size, at = 0, e.Seq
		}
		if at >= 0 {
			size += e.Tokens
		}
		switch {
		case role == "user":
			turn = 0
			if j.dialect == anthropic && w.summaries == 0 {
				turn = e.Tokens
			}
		case e.Seq == at:
			size += turn
		}
	}
	return size
}
