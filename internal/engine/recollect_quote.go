package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/retrieval"
	"github.com/engined/engined/internal/search"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/tokens"
	"github.com/engined/engined/internal/window"
)

// passageRunes is how long a passage may be.
const passageRunes = 900

// cite names a passage: a piece of what a message says, or of its results.
type cite struct {
	// Place is that of the message in the session's line.
	Place   int64 `json:"at"`
	Results bool  `json:"results,omitempty"`
	// From and To are bytes of textOf.
	From int `json:"from"`
	To   int `json:"to"`
	// Tokens is the estimate of the piece alone.
	Tokens int `json:"tokens"`
}

// quoted is a passage with its citation.
type quoted struct {
	cite
	window.Passage
}

// inOrder adds a passage in the log's order, unless its text is there already.
func inOrder(to []quoted, q quoted) []quoted {
	if slices.ContainsFunc(to, func(x quoted) bool { return x.Text == q.Text }) {
		return to
	}
	out := append(slices.Clone(to), q)
	slices.SortFunc(out, func(a, b quoted) int {
		return cmp.Or(cmp.Compare(a.Place, b.Place), cmp.Compare(a.cite.From, b.cite.From))
	})
	return out
}

func (q *question) fits(d message.Dialect, passages []quoted, room int) bool {
	ps := make([]window.Passage, len(passages))
	for i := range passages {
		ps[i] = passages[i].Passage
	}
	_, n := passageMessage(d, ps, q.factor)
	return n <= room
}

// cite makes citations of hits that tell enough, best first.
func (l line) cite(ctx context.Context, hits []retrieval.Hit, wants []search.Want) ([]quoted, error) {
	places := make([]int64, len(hits))
	for i := range hits {
		places[i] = l.placeOf(hits[i].SID, hits[i].Seq)
	}
	stored, err := l.recorded(ctx, places)
	if err != nil {
		return nil, err
	}
	var out []quoted
	for i := range hits {
		h := &hits[i]
		m, err := message.Read(stored[places[i]].Body)
		if err != nil || !tells(h.Text, wants) {
			continue // what cannot be read is not quoted
		}
		c := cite{Place: places[i], Results: h.Kind == store.SearchResult}
		text := textOf(&m, c.Results)
		at := strings.Index(text, h.Text)
		if at < 0 {
			continue
		}
		from, to := piece(h.Text, h.Snippet.Text)
		if from >= to {
			continue
		}
		c.From, c.To, c.Tokens = at+from, at+to, tokens.Text(h.Text[from:to])
		out = append(out, quoted{c, l.passage(c, &m, text, stored[c.Place].At)})
	}
	return out, nil
}

// passage is what is cited of a message.
func (l line) passage(c cite, m *message.Message, text string, recorded time.Time) window.Passage {
	seg, seq, _ := l.Locate(c.Place)
	return window.Passage{
		Seq: seq, SessionKey: seg.SessionKey, By: speakerOf(m, c.Results), At: saidAt(m, recorded),
		Text: text[c.From:c.To], From: c.From > 0, To: c.To < len(text),
	}
}

func speakerOf(m *message.Message, results bool) string {
	switch {
	case results && m.ToolName != "":
		return "tool " + m.ToolName
	case results:
		return "tool"
	case m.Role == message.Assistant:
		return "assistant"
	case m.Role == message.System:
		return "system"
	case m.Role == message.Note:
		return "note"
	case m.Name != "":
		return "user " + m.Name
	}
	return "user"
}

// saidAt is the message's own time where it can be one, else when it was recorded.
func saidAt(m *message.Message, recorded time.Time) time.Time {
	t := time.UnixMilli(m.Timestamp)
	if t.Year() < 2000 || t.After(recorded.Add(24*time.Hour)) {
		return recorded
	}
	return t
}

// placeOf is where an event of the line stands; 0 nowhere.
func (l line) placeOf(sid uuid.UUID, seq int64) int64 {
	if sid == l.sid {
		return l.Place(seq)
	}
	for _, seg := range l.Line {
		if seg.SID == events.SID(sid) {
			return seg.After + seq
		}
	}
	return 0
}

// tells reports a text with at least two of the things that are asked for, where
// there are as many: one word in common is chance.
func tells(text string, wants []search.Want) bool {
	held := 0
	for _, w := range wants {
		places := search.NewMatcher(w.Forms).Find(text, 1)
		if slices.ContainsFunc(places, func(at []search.Span) bool { return len(at) > 0 }) {
			held++
		}
	}
	return held >= min(2, len(wants))
}

// piece is the part of a text around a snippet of it, cut at blanks.
func piece(text, snippet string) (from, to int) {
	if utf8.RuneCountInString(text) <= passageRunes {
		return trimmed(text, 0, len(text))
	}
	snippet = strings.TrimSuffix(strings.TrimPrefix(snippet, "…"), "…")
	from = max(strings.Index(text, snippet), 0)
	to = min(from+len(snippet), len(text))
	room := passageRunes - utf8.RuneCountInString(text[from:to])
	for side := max(room/2, 0); side > 0 && from > 0; side-- {
		_, n := utf8.DecodeLastRuneInString(text[:from])
		from -= n
	}
	room = passageRunes - utf8.RuneCountInString(text[from:to])
	for ; room > 0 && to < len(text); room-- {
		_, n := utf8.DecodeRuneInString(text[to:])
		to += n
	}
	const nearby = 80 // bytes that a cut may move to a blank
	if from > 0 {
		if i := strings.IndexFunc(text[from:min(from+nearby, to)], unicode.IsSpace); i >= 0 {
			from += i
		}
	}
	if to < len(text) {
		if i := strings.LastIndexFunc(text[max(to-nearby, from):to], unicode.IsSpace); i >= 0 {
			to = max(to-nearby, from) + i
		}
	}
	return trimmed(text, from, to)
}

func trimmed(text string, from, to int) (int, int) {
	from += len(text[from:to]) - len(strings.TrimLeftFunc(text[from:to], unicode.IsSpace))
	return from, from + len(strings.TrimRightFunc(text[from:to], unicode.IsSpace))
}

// textOf is what a message says, or what its results say, as it is searched.
func textOf(m *message.Message, results bool) string {
	want := message.Text
	if results {
		want = message.ToolResult
	}
	var texts []string
	for i := range m.Blocks {
		if m.Blocks[i].Kind == want {
			texts = append(texts, m.Blocks[i].Text)
		}
	}
	return search.Clean(strings.Join(texts, "\n"))
}

// quote reads what is cited. What is not there as it was cited is an error: the
// log does not change but for erasures.
func (l line) quote(ctx context.Context, cites []cite) ([]window.Passage, error) {
	places := make([]int64, len(cites))
	for i := range cites {
		places[i] = cites[i].Place
	}
	stored, err := l.recorded(ctx, places)
	if err != nil {
		return nil, err
	}
	out := make([]window.Passage, len(cites))
	for i, c := range cites {
		m, err := message.Read(stored[c.Place].Body)
		if err != nil {
			return nil, fmt.Errorf("passage of %d: %w", c.Place, err)
		}
		text := textOf(&m, c.Results)
		if c.From < 0 || c.From >= c.To || c.To > len(text) {
			return nil, fmt.Errorf("passage of %d is gone", c.Place)
		}
		out[i] = l.passage(c, &m, text, stored[c.Place].At)
	}
	return out, nil
}
