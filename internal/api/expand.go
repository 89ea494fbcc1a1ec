package api

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/tokens"
)

// ExpandedRow is what a summary covers, in words: a message or a summary one
// level down. Seq (or ID) is what to cite.
type ExpandedRow struct {
	Kind string `json:"kind" enum:"message,summary"`
	// SessionKey is the ancestor's whose event it is; absent for the session's own.
	SessionKey string    `json:"sessionKey,omitempty"`
	Seq        int64     `json:"seq,omitempty"`
	ID         int64     `json:"id,omitempty"`
	Level      int       `json:"level,omitempty"`
	Role       string    `json:"role,omitempty"`
	Time       time.Time `json:"time"`
	// Text is the message as words: reasoning and images left out, calls as
	// their name and arguments.
	Text   string `json:"text"`
	Tokens int    `json:"tokens"`
	// Cut is set where the text alone is larger than what was asked for.
	Cut bool `json:"cut,omitempty"`
}

// Expansion is a page of what a summary covers.
type Expansion struct {
	ID    int64         `json:"id"`
	Items []ExpandedRow `json:"items"`
	// Tokens is the estimate of all texts of the page; Next the next page's
	// after, null at the end.
	Tokens int  `json:"tokens"`
	Next   *int `json:"next"`
	// Total is the number of items of all pages.
	Total int `json:"total"`
}

const (
	defaultExpansion = 4000
	maxExpansion     = 200_000
	// expandAtOnce is how many messages are read at a time; maxExpanded bounds
	// the messages that are looked for below one summary.
	expandAtOnce = 64
	maxExpanded  = 1_000_000
)

func expandOperation() *operation {
	op := get(sessionPath+"/summaries/{id}/expand", "expandSummary", tagSessions, "Read what a summary covers, in words", serveExpansion)
	op.description = "One level down, or with `messages=true` all messages under it. A page holds at most `maxTokens` tokens; each item says what to cite."
	op.answer = of[Expansion]()
	op.query = []queryParam{
		{name: "maxTokens", in: "query", integer: true, least: 1, doc: fmt.Sprintf("Tokens of a page: %d where absent, at most %d.", defaultExpansion, maxExpansion)},
		{name: "messages", in: "query", doc: "true: the messages under it, however deep."},
		{name: "after", in: "query", integer: true, doc: "The page's `next` before."},
	}
	return op
}

// part is one thing to expand: a message by its place or a child summary.
type part struct {
	place int64
	child bool
	// first orders it: the first place that it covers.
	first int64
}

func serveExpansion(c *call) error {
	q, err := c.parameters()
	if err != nil {
		return err
	}
	most, err := seq("maxTokens", cmp.Or(q.Get("maxTokens"), strconv.Itoa(defaultExpansion)), 1)
	if err != nil {
		return err
	}
	most = min(most, maxExpansion)
	after, err := seq("after", q.Get("after"), 0)
	if err != nil {
		return err
	}
	t, row, body, err := c.summary()
	if err != nil {
		return err
	}
	parts, err := c.parts(&t, body, q.Get("messages") == "true")
	if err != nil {
		return err
	}
	out := Expansion{ID: row.ID, Items: []ExpandedRow{}, Total: len(parts)}
	for at := int(min(after, int64(len(parts)))); at < len(parts); {
		rows, err := c.expanded(&t, parts[at:min(at+expandAtOnce, len(parts))])
		if err != nil {
			return err
		}
		for _, r := range rows {
			room := int(most) - out.Tokens
			if r.Tokens > room && len(out.Items) > 0 {
				out.Next = &at
				return c.answer(&out)
			}
			if r.Tokens > room {
				r.cut(room)
			}
			out.Items, out.Tokens = append(out.Items, r), out.Tokens+r.Tokens
			at++
		}
		if out.Tokens >= int(most) && at < len(parts) {
			out.Next = &at
			return c.answer(&out)
		}
	}
	return c.answer(&out)
}

// parts are what a summary covers directly, or all messages under it, in the
// order of the log.
func (c *call) parts(t *tree, body events.SummaryBody, deep bool) ([]part, error) {
	var out []part
	for _, r := range body.Sources {
		for n := r.From; n <= r.To && len(out) < maxExpanded; n++ {
			out = append(out, part{place: n, first: n})
		}
	}
	for _, id := range body.Children {
		_, child, err := c.find(t, id)
		if err != nil {
			return nil, err
		}
		if deep {
			under, err := c.parts(t, child, true)
			if err != nil {
				return nil, err
			}
			out = append(out, under...)
			continue
		}
		p := part{place: id, child: true, first: id}
		for _, r := range child.Covers {
			p.first = min(p.first, r.From)
		}
		out = append(out, p)
	}
	slices.SortStableFunc(out, func(a, b part) int { return cmp.Compare(a.first, b.first) })
	return out, nil
}

// expanded reads parts.
func (c *call) expanded(t *tree, parts []part) ([]ExpandedRow, error) {
	out := make([]ExpandedRow, len(parts))
	wanted := make(map[uuid.UUID][]int64)
	sids := make([]uuid.UUID, len(parts))
	for i, p := range parts {
		if p.child {
			row, _, err := c.find(t, p.place)
			if err != nil {
				return nil, err
			}
			out[i] = ExpandedRow{
				Kind: "summary", SessionKey: row.SessionKey, ID: row.ID, Level: row.Level, Time: row.CreatedAt,
				Text: row.Text, Tokens: row.Tokens,
			}
			continue
		}
		seg, n, own := t.line.Locate(p.place)
		sids[i] = uuid.UUID(seg.SID)
		if own {
			sids[i] = t.boughs[len(t.boughs)-1].sid
		}
		out[i] = ExpandedRow{Kind: "message", SessionKey: seg.SessionKey, Seq: n}
		wanted[sids[i]] = append(wanted[sids[i]], n)
	}
	for sid, seqs := range wanted {
		found, err := c.api.cfg.Log.Recorded(c.ctx, c.tenant, sid, seqs)
		if err != nil {
			return nil, err
		}
		for i := range out {
			e, ok := found[out[i].Seq]
			if !ok || parts[i].child || sids[i] != sid {
				continue
			}
			m, err := message.Read(e.Body)
			if err != nil {
				return nil, fmt.Errorf("message %d: %w", out[i].Seq, err)
			}
			out[i].Role, out[i].Time, out[i].Text = roleName(m.Role), e.At, words(&m)
			if m.Timestamp > 0 {
				out[i].Time = time.UnixMilli(m.Timestamp).UTC()
			}
			out[i].Tokens = tokens.Text(out[i].Text)
		}
	}
	return out, nil
}

// words are what a message says.
func words(m *message.Message) string {
	var lines []string
	for i := range m.Blocks {
		switch b := &m.Blocks[i]; b.Kind {
		case message.Text, message.ToolResult:
			if b.Text != "" {
				lines = append(lines, b.Text)
			}
		case message.ToolCall:
			lines = append(lines, strings.TrimSpace("→ "+b.Call.Name+" "+b.Call.Args))
		case message.Image:
			lines = append(lines, "(an image)")
		case message.Thinking:
		}
	}
	return strings.Join(lines, "\n")
}

// cut shortens the text to so many tokens, the ending included.
func (r *ExpandedRow) cut(most int) {
	all, where := utf8.RuneCountInString(r.Text), r.Seq
	if r.Kind == "summary" {
		where = r.ID
	}
	whole := []rune(r.Text)
	shorter := func(n int) string {
		return fmt.Sprintf("%s\n[engined: %d of %d characters shown; full text: event %d]", string(whole[:n]), n, all, where)
	}
	low, high := 0, min(all, 16*most) // no vocabulary has tokens that long on average
	for low < high {
		if mid := (low + high + 1) / 2; tokens.Text(shorter(mid)) <= most {
			low = mid
		} else {
			high = mid - 1
		}
	}
	r.Text, r.Cut = shorter(low), true
	r.Tokens = tokens.Text(r.Text)
}
