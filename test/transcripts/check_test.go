package transcripts_test

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/engined/engined/contextengine"
)

// seen is a window that held.
type seen struct {
	budget int
	res    contextengine.AssembleResult
	// seqs are the events shown, summaries how many of them are one.
	seqs      []int64
	summaries int
	// notices is 1 where the engine's own message begins the window, which is none
	// of seqs.
	notices int
	// tokens is the o200k count of all that the model reads.
	tokens int
	// over: it does not fit; underused: it uses less than half of its budget
	// though messages are left out, since the next one is too large.
	over, underused bool
	trimmed         int
}

// messages is how many messages are shown.
func (s *seen) messages() int { return len(s.seqs) - s.summaries }

// check holds an explained window against the log and against the rules.
func (l *lab) check(j *journal, budget int, res contextengine.AssembleResult) (*seen, error) {
	w := &seen{budget: budget, res: res}
	read, err := l.identify(j, w)
	if err != nil {
		return w, err
	}
	for _, rule := range []func(*journal, *seen) error{inOrder, newestUserShown, accounted, reasons, fits} {
		if err := rule(j, w); err != nil {
			return w, err
		}
	}
	err = strict(j.dialect, read, func(i int) bool { return j.stillOpen(w.seqs[i-w.notices], res.Head) })
	if err != nil {
		return w, err
	}
	for i := range read {
		n, err := l.count.message(&read[i])
		if err != nil {
			return w, err
		}
		w.tokens += n
	}
	if w.tokens > budget && !w.over {
		return w, fmt.Errorf("%d tokens in a window for %d (estimated %d)", w.tokens, budget, res.EstimatedTokens)
	}
	if w.tokens > res.EstimatedTokens {
		return w, fmt.Errorf("%d tokens in a window estimated at %d", w.tokens, res.EstimatedTokens)
	}
	return w, nil
}

var closesSummary = regexp.MustCompile(`(?i)<(/\s*summary)`)

// identify says which event each message of the window is, taking the answer's
// word for it and the bytes as the proof.
func (l *lab) identify(j *journal, w *seen) ([]said, error) {
	if len(w.res.Explanation) < len(w.res.Messages) {
		return nil, fmt.Errorf("%d messages, %d explained", len(w.res.Messages), len(w.res.Explanation))
	}
	out := make([]said, len(w.res.Messages))
	for i, raw := range w.res.Messages {
		e := w.res.Explanation[i]
		if !e.Shown {
			return nil, fmt.Errorf("message %d is explained as not shown", i)
		}
		if e.Kind == "notice" {
			if i > 0 || j.dialect != anthropic || j.newestUser(w.res.Head) >= 0 {
				return nil, fmt.Errorf("message %d is a notice", i)
			}
			var err error
			if out[i], err = read(raw); err != nil {
				return nil, err
			}
			w.notices = 1
			continue
		}
		w.seqs = append(w.seqs, e.Seq)
		if e.Kind == "summary" {
			b, ok := j.summaries[e.Seq]
			if !ok || !slices.Contains(j.live, e.Seq) || i != w.summaries {
				return nil, fmt.Errorf("message %d is no live summary", i)
			}
			w.summaries++
			m, err := summary(j.dialect, raw)
			if err != nil {
				return nil, err
			}
			whole := closesSummary.ReplaceAllString(b.Text, `<\$1`)
			if e.Reason == shortened {
				if err := shorter(m.texts[0], whole, e.Seq); err != nil {
					return nil, fmt.Errorf("message %d: %w", i, err)
				}
			} else if !strings.Contains(m.texts[0], whole) {
				return nil, fmt.Errorf("message %d does not hold the text of summary %d", i, e.Seq)
			}
			out[i] = m
			continue
		}
		at, ok := j.index[e.Seq]
		if !ok {
			return nil, fmt.Errorf("message %d is event %d, which is no message", i, e.Seq)
		}
		out[i] = j.read[at]
		if bytes.Equal(raw, j.messages[at]) {
			continue
		}
		if out[i].role != "result" && out[i].role != "note" {
			return nil, fmt.Errorf("event %d (%s) is shown with other bytes", e.Seq, out[i].role)
		}
		if err := onlyCut(j.messages[at], raw, e.Seq); err != nil {
			return nil, err
		}
		var err error
		if out[i], err = read(raw); err != nil {
			return nil, err
		}
	}
	if i := slices.IndexFunc(w.res.Explanation[len(out):], func(e contextengine.Explanation) bool { return e.Shown }); i >= 0 {
		return nil, fmt.Errorf("event %d is explained as shown and is not", w.res.Explanation[len(out)+i].Seq)
	}
	return out, nil
}

// summary reads the message of a summary, which has its own form in each dialect.
func summary(d dialect, raw []byte) (said, error) {
	m, err := read(raw)
	if err != nil {
		return m, err
	}
	if d == openClaw {
		m.texts = slices.DeleteFunc(m.texts, func(s string) bool { return s == "" })
	}
	switch {
	case len(m.texts) != 1:
		return m, fmt.Errorf("a summary of %d texts", len(m.texts))
	case d == openClaw && m.role != "note", d != openClaw && m.role != "user":
		return m, fmt.Errorf("a summary with the role %s", m.role)
	case d != openClaw && !strings.Contains(m.texts[0], "<summary>"):
		return m, errors.New("a summary that is not marked")
	case !strings.Contains(strings.ToLower(m.texts[0]), "untrusted"):
		return m, errors.New("a summary that is not marked as untrusted")
	}
	return m, nil
}

// inOrder: what is shown stands in the order of the log, but that results
// follow their call. An Anthropic window may have a user message in front.
func inOrder(j *journal, w *seen) error {
	last, head := int64(0), int64(0)
	for i, seq := range w.seqs[w.summaries:] {
		if j.read[j.index[seq]].role == "result" {
			if seq <= head {
				return fmt.Errorf("result %d stands behind the later call %d", seq, head)
			}
			continue
		}
		if seq <= last && !(i == 1 && j.dialect == anthropic) {
			return fmt.Errorf("event %d follows event %d", seq, last)
		}
		last, head = seq, seq
	}
	return nil
}

// newestUser is the event of the newest message of the user, -1 for none.
func (j *journal) newestUser(head int64) int64 {
	for i, seq := range slices.Backward(j.seqs) {
		if m := &j.read[i]; seq <= head && m.role == "user" && m.showable() {
			return seq
		}
	}
	return -1
}

func newestUserShown(j *journal, w *seen) error {
	if seq := j.newestUser(w.res.Head); seq >= 0 && !slices.Contains(w.seqs, seq) {
		return fmt.Errorf("the newest user message (event %d) is not shown", seq)
	}
	return nil
}

// stillOpen: nobody has spoken since the call was made.
func (j *journal) stillOpen(call, head int64) bool {
	for i, seq := range j.seqs {
		m := &j.read[i]
		if seq > call && seq <= head && (m.role == "user" || m.role == "assistant") && m.showable() {
			return false
		}
	}
	return true
}

// shortened is the reason of a summary of which some lines are shown.
const shortened = "summary of older messages, shortened for want of room"

// shorter holds the shorter form of a summary against the whole: it is smaller,
// points to it, and says nothing else.
func shorter(got, whole string, seq int64) error {
	body, mark, ok := strings.Cut(got, "\n[engined: ")
	if !ok || !strings.Contains(mark, fmt.Sprintf("expand summary %d for the rest]", seq)) {
		return fmt.Errorf("the short form of summary %d does not point to it: %q", seq, got)
	}
	for i, line := range strings.Split(body, "\n") {
		framed := i == 0 || line == "" || line == "<summary>"
		if !framed && !strings.Contains(whole, strings.TrimSuffix(line, "…")) {
			return fmt.Errorf("summary %d does not say %q", seq, line)
		}
	}
	return nil
}
