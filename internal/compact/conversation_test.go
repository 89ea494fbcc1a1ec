package compact

import (
	"fmt"

	"pgregory.net/rapid"

	"github.com/engined/engined/internal/message"
)

// conversation makes logs of every shape: repeated call ids, calls without
// results, late and doubled results, orphans, hidden rows, heartbeats.
type conversation struct {
	entries []Entry
	seq     int64
	ids     int
}

func (c *conversation) add(role message.Role, tokens int, flags message.Flags) *Entry {
	c.seq++
	if flags.Has(message.Hidden) {
		tokens = 0
	}
	c.entries = append(c.entries, Entry{Seq: c.seq, Facts: message.Facts{Role: role, Tokens: tokens, Flags: flags}})
	return &c.entries[len(c.entries)-1]
}

func (c *conversation) result(id string, tokens int) {
	c.add(message.Result, tokens, 0).Results = []string{id}
}

func (c *conversation) calls(n, tokens int, constant bool) []string {
	var ids []string
	for range n {
		c.ids++
		id := fmt.Sprintf("call_%d", c.ids)
		if constant {
			id = "call"
		}
		ids = append(ids, id)
	}
	c.add(message.Assistant, tokens, 0).Calls = ids
	return ids
}

// words may put words of the user beside the newest result.
func (c *conversation) words(t *rapid.T) {
	if rapid.IntRange(0, 3).Draw(t, "words") == 0 {
		c.entries[len(c.entries)-1].Flags |= message.UserText
	}
}

// turn is a plain one: a user, rounds of one answered call, an answer.
func (c *conversation) turn(user, rounds, result, answer int) {
	c.add(message.User, user, 0)
	for range rounds {
		for _, id := range c.calls(1, 40, false) {
			c.result(id, result)
		}
	}
	c.add(message.Assistant, answer, 0)
	c.seq += 2 // the turn's own events take seqs too
}

func (c *conversation) drawTurns(t *rapid.T, turns, scale int) {
	size := rapid.IntRange(1, scale)
	for range turns {
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0: // heartbeat
			c.add(message.User, 30, message.Heartbeat)
			c.add(message.Assistant, 5, message.Heartbeat)
		case 1: // noise
			c.add(message.Assistant, 0, message.Hidden)
			c.result("nobody", size.Draw(t, "orphan"))
			c.words(t)
			c.add(message.Note, size.Draw(t, "note"), message.Cuttable)
		case 2: // dead call, whose result may come much later
			c.add(message.User, size.Draw(t, "user"), 0)
			ids := c.calls(rapid.IntRange(1, 2).Draw(t, "dead"), size.Draw(t, "calls"), false)
			if len(ids) > 1 {
				c.result(ids[1], size.Draw(t, "result"))
				c.words(t)
			}
			c.add(message.User, size.Draw(t, "user"), 0)
			c.add(message.Assistant, size.Draw(t, "answer"), 0)
			if rapid.Bool().Draw(t, "late") {
				if rapid.Bool().Draw(t, "while another is open") {
					c.calls(1, size.Draw(t, "calls"), false)
				}
				c.result(ids[0], size.Draw(t, "late result"))
				c.words(t)
			}
		default:
			c.add(message.User, size.Draw(t, "user"), 0)
			for range rapid.IntRange(0, 6).Draw(t, "rounds") {
				ids := c.calls(rapid.IntRange(1, 3).Draw(t, "parallel"), size.Draw(t, "calls"), rapid.Bool().Draw(t, "constant id"))
				if rapid.IntRange(0, 5).Draw(t, "between") == 0 {
					c.add(message.Note, size.Draw(t, "note"), message.Cuttable)
				}
				for _, id := range ids {
					c.result(id, size.Draw(t, "result")*3)
					c.words(t)
					if rapid.IntRange(0, 9).Draw(t, "double") == 0 {
						c.result(id, size.Draw(t, "result"))
					}
				}
			}
			if rapid.IntRange(0, 5).Draw(t, "open end") > 0 {
				c.add(message.Assistant, size.Draw(t, "answer"), 0)
			}
		}
		c.seq += int64(rapid.IntRange(0, 2).Draw(t, "gap"))
	}
}
