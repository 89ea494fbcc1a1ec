package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/compact"
	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/tokens"
)

// line is a row of the windows' table, summed over sessions.
type line struct {
	budget int
	name   string
	// windows were looked at; valid ones are within the budget and well formed.
	windows, valid int
	tokens         int
	// shown and all count questions, shownOrFound those whose answer is shown or
	// among the first ten hits.
	shown, shownOrFound, all int
	// kept and ids count identifiers of the whole past in the last windows.
	kept, ids int
	// keptShares and idWindows are for the mean over all windows: of the identifiers
	// said so far, the share that a window holds.
	keptShares float64
	idWindows  int
	// compactions are those that changed something.
	compactions int
	// same and whole count the bytes of windows that were the beginning of the
	// window before, and all bytes.
	same, whole int
}

// step is how many messages come between two windows.
const step = 10

// history is a session to play: its messages, and what may be asked of it.
type history struct {
	key      string
	messages []json.RawMessage
	// said are the texts of the messages.
	said      []string
	questions []question
	hits      [][]int
	// model is the one that most was said by, "" where none is named.
	model string
}

// play stores a session step by step. After each step it compacts if the window
// is over the threshold and looks at the window; at the end, at what it knows.
func (b *bench) play(ctx context.Context, name string, budget int, h *history, l *line) error {
	see := func(shown []json.RawMessage) error { return l.see(shown, budget) }
	var before []json.RawMessage
	next := b.truncate
	if name != truncateOldest {
		next = b.engine(name, l)
	}
	said := map[string]struct{}{}
	for at := 0; at < len(h.messages); at += step {
		upto := min(len(h.messages), at+step)
		shown, err := next(ctx, h, at, upto, budget)
		if err != nil {
			return fmt.Errorf("%s: %w", h.key, err)
		}
		if err := see(shown); err != nil {
			return fmt.Errorf("%s: %w", h.key, err)
		}
		l.grew(before, shown)
		before = shown
		for id := range identifiers(h.said[at:upto]) {
			said[id] = struct{}{}
		}
		l.holds(said, shown)
	}
	l.knows(h, before)
	return nil
}

const truncateOldest = "truncate oldest"

// truncate shows the newest messages that fit, from a user's on. It counts as the
// engines do at first, so that all have the same room.
func (b *bench) truncate(_ context.Context, h *history, _, upto, budget int) ([]json.RawMessage, error) {
	used, first, factor := 0, upto, tokens.Prior(h.model)
	for i := upto - 1; i >= 0; i-- {
		m, err := message.Read(h.messages[i])
		if err != nil {
			return nil, err
		}
		if used += tokens.Message(m); used*factor/1000 > budget {
			break
		}
		if m.Role == message.User {
			first = i
		}
	}
	return h.messages[first:upto], nil
}

// engine plays a session with one of the engines.
func (b *bench) engine(name string, l *line) func(context.Context, *history, int, int, int) ([]json.RawMessage, error) {
	e := b.engines[name]
	return func(ctx context.Context, h *history, from, upto, budget int) ([]json.RawMessage, error) {
		s := session(fmt.Sprintf("%s:%d:%s", name, budget, h.key))
		if _, err := e.IngestBatch(ctx, contextengine.IngestBatchParams{Session: s, Messages: h.messages[from:upto]}); err != nil {
			return nil, err
		}
		stored, err := b.store.Session(ctx, tenant, s.SessionKey)
		if err != nil {
			return nil, err
		}
		if compact.DefaultPolicy().Owes(int(stored.LiveTokens()), budget) {
			res, err := e.Compact(ctx, contextengine.CompactParams{Session: s, TokenBudget: &budget})
			if err != nil {
				return nil, err
			}
			if res.Compacted {
				l.compactions++
			}
		}
		res, err := e.Assemble(ctx, contextengine.AssembleParams{Session: s, TokenBudget: &budget, Model: h.model})
		if err != nil {
			return nil, err
		}
		return res.Messages, nil
	}
}

// see counts a window's tokens and holds it to the rules of providers.
func (l *line) see(shown []json.RawMessage, budget int) error {
	l.windows++
	used, open, ok := 0, map[string]int{}, len(shown) > 0
	for _, raw := range shown {
		m, err := message.Read(raw)
		if err != nil {
			return err
		}
		used += tokens.Message(m)
		empty := true
		for i := range m.Blocks {
			switch b := &m.Blocks[i]; b.Kind {
			case message.ToolCall:
				open[b.Call.ID]++
			case message.ToolResult:
				if open[b.ResultOf]--; open[b.ResultOf] < 0 {
					ok = false // a result without its call
				}
			}
			empty = false
		}
		ok = ok && !empty
	}
	l.tokens += used
	if ok && used <= budget {
		l.valid++
	}
	return nil
}

// grew counts what a provider's cache would have of a window.
func (l *line) grew(before, after []json.RawMessage) {
	same := true
	for i, raw := range after {
		l.whole += len(raw)
		if same = same && i < len(before) && bytes.Equal(before[i], raw); same {
			l.same += len(raw)
		}
	}
}

// knows asks the last window the questions, and looks for the identifiers.
func (l *line) knows(h *history, shown []json.RawMessage) {
	text := textIn(shown)
	for i, q := range h.questions {
		l.all++
		inWindow := false
		for e := range q.evidence {
			inWindow = inWindow || strings.Contains(text, h.said[e])
		}
		if inWindow {
			l.shown++
		}
		if inWindow || slices.ContainsFunc(h.hits[i], func(hit int) bool { return q.evidence[hit] }) {
			l.shownOrFound++
		}
	}
	for id := range identifiers(h.said) {
		l.ids++
		if strings.Contains(text, id) {
			l.kept++
		}
	}
}

// holds looks which of the identifiers said so far a window holds.
func (l *line) holds(said map[string]struct{}, shown []json.RawMessage) {
	if len(said) == 0 {
		return
	}
	text, kept := textIn(shown), 0
	for id := range said {
		if strings.Contains(text, id) {
			kept++
		}
	}
	l.keptShares += float64(kept) / float64(len(said))
	l.idWindows++
}

// textIn is all that a window says.
func textIn(shown []json.RawMessage) string {
	var all strings.Builder
	for _, raw := range shown {
		m, err := message.Read(raw)
		if err != nil {
			continue
		}
		for i := range m.Blocks {
			all.WriteString(m.Blocks[i].Text)
			all.WriteString("\n")
			all.WriteString(m.Blocks[i].Call.Args)
			all.WriteString("\n")
		}
	}
	return all.String()
}
