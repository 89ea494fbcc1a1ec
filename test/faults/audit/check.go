package audit

import (
	"fmt"
	"slices"
)

// Row is an event of a session's log as a reader gets it.
type Row struct {
	Seq     int64
	Type    string
	Epoch   int64
	Message []byte // of a message: its bytes
	Data    []byte // of any other event: what it says, as JSON
}

// Check holds the whole log of a session against what was recorded and returns
// every promise that was broken, in words.
func Check(r *Recorder, session string, log []Row) []string {
	c := &checker{session: session, at: make(map[string]int, len(log)), log: log}
	c.numbering()
	c.messages()
	writes := r.of(session)
	c.writes(writes)
	c.order(writes)
	c.epochs()
	return c.broken
}

type checker struct {
	session string
	log     []Row
	at      map[string]int // index of a message in the log
	broken  []string
}

func (c *checker) failf(format string, args ...any) {
	c.broken = append(c.broken, c.session+": "+fmt.Sprintf(format, args...))
}

// numbering: 1, 2, 3 … without gaps.
func (c *checker) numbering() {
	for i, row := range c.log {
		if row.Seq != int64(i)+1 {
			c.failf("seq %d stands where %d belongs", row.Seq, i+1)
			return
		}
	}
}

// messages: each at most once.
func (c *checker) messages() {
	for i, row := range c.log {
		if row.Message == nil {
			continue
		}
		if before, twice := c.at[string(row.Message)]; twice {
			c.failf("the message of seq %d is there again at seq %d: %.80s", c.log[before].Seq, row.Seq, row.Message)
			continue
		}
		c.at[string(row.Message)] = i
	}
}

// writes: what was acknowledged is there, whole, together, in order and where
// the answer said; what was refused is not; nobody else wrote anything.
func (c *checker) writes(writes []Write) {
	known := make(map[string]bool, len(c.at))
	for i := range writes {
		w := &writes[i]
		var found []int
		for _, m := range w.Messages {
			known[string(m)] = true
			if at, ok := c.at[string(m)]; ok {
				found = append(found, at)
			}
		}
		c.write(w, found)
	}
	for _, row := range c.log {
		if row.Message != nil && !known[string(row.Message)] {
			c.failf("seq %d was written by nobody: %.80s", row.Seq, row.Message)
		}
	}
}

func (c *checker) write(w *Write, found []int) {
	name := fmt.Sprintf("%s of %.60s", w.Kind, w.Messages[0])
	switch {
	case len(found) == 0:
		if w.state == Acked {
			c.failf("acknowledged and lost: %s", name)
		}
		return
	case w.state == Refused:
		c.failf("refused and yet stored at seq %d: %s", c.log[found[0]].Seq, name)
		return
	case len(found) < len(w.Messages):
		c.failf("%d of %d messages are stored: %s", len(found), len(w.Messages), name)
		return
	}
	for i := 1; i < len(found); i++ {
		if found[i] != found[i-1]+1 {
			c.failf("not contiguous, seq %d follows %d: %s", c.log[found[i]].Seq, c.log[found[i-1]].Seq, name)
			return
		}
	}
	for i, seq := range w.seqs {
		if c.log[found[i]].Seq != seq {
			c.failf("acknowledged at seq %d, stored at %d: %s", seq, c.log[found[i]].Seq, name)
			return
		}
	}
	if want := closing(w.Kind); len(want) > 0 {
		var got []string
		for i := found[len(found)-1] + 1; i < len(c.log) && len(got) < len(want); i++ {
			got = append(got, c.log[i].Type)
		}
		if !slices.Equal(got, want) {
			c.failf("a turn is followed by %v, not by %v: %s", got, want, name)
		}
	}
}

// closing are the events that end a turn, right behind its messages.
func closing(k Kind) []string {
	switch k {
	case Commit:
		return []string{"turn.committed", "turn.completed"}
	case After:
		return []string{"turn.completed"}
	}
	return nil
}

// order: what was begun after another write was acknowledged stands behind it.
func (c *checker) order(writes []Write) {
	acked := slices.DeleteFunc(slices.Clone(writes), func(w Write) bool { return w.state != Acked })
	slices.SortFunc(acked, func(a, b Write) int { return int(a.end) - int(b.end) })
	ended, highest := 0, -1 // of the writes that had ended before w began
	for i := range writes { // in the order of their beginning
		w := &writes[i]
		for ; ended < len(acked) && acked[ended].end < w.begun; ended++ {
			last := acked[ended].Messages[len(acked[ended].Messages)-1]
			if at, ok := c.at[string(last)]; ok {
				highest = max(highest, at)
			}
		}
		if at, ok := c.at[string(w.Messages[0])]; ok && at <= highest {
			c.failf("seq %d was sent after seq %d was acknowledged, and stands before it", c.log[at].Seq, c.log[highest].Seq)
		}
	}
}
