package transcripts_test

import (
	"errors"
	"fmt"
	"slices"
)

// strict is what a provider demands of the messages of a call. live tells
// whether the call of message i may still be waiting for its result.
func strict(d dialect, window []said, live func(i int) bool) error {
	var open []string
	head, text := -1, false
	for i, m := range window {
		if !m.showable() {
			return fmt.Errorf("message %d (%s) is empty or excluded", i, m.role)
		}
		if m.role != "result" {
			if len(open) > 0 {
				return fmt.Errorf("message %d (%s) stands before the results of %q", i, m.role, open)
			}
			head, text = i, false
			for _, c := range m.calls {
				if m.role != "assistant" {
					return fmt.Errorf("message %d: a %s calls a tool", i, m.role)
				}
				open = append(open, c.id)
			}
			continue
		}
		if head < 0 || window[head].role != "assistant" {
			return fmt.Errorf("message %d: results %q without a call", i, m.results)
		}
		for _, id := range m.results {
			at := slices.Index(open, id)
			if at < 0 {
				return fmt.Errorf("message %d: result %q answers no open call of message %d %q", i, id, head, open)
			}
			open = slices.Delete(open, at, at+1)
		}
		if text {
			return fmt.Errorf("message %d: text of the user stands between results", i)
		}
		text = m.speaks() && len(m.texts) > 0
	}
	if len(open) > 0 && !live(head) {
		return fmt.Errorf("call %q of message %d is dead", open, head)
	}
	if d == anthropic && len(window) > 0 && window[0].role != "user" {
		return errors.New("the window does not begin with the user")
	}
	return nil
}
