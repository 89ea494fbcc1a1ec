package engine

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/search"
	"github.com/engined/engined/internal/window"
)

// question is what passages are looked for with, and where they will stand.
type question struct {
	text  string
	query search.Query
	// speaker is the place of the newest words of a user, before and at as in a
	// recollection.
	speaker, before int64
	at              int
	// factor is what estimates of tokens are multiplied by, in thousandths.
	factor int
}

// ask finds the question of a window: the host's prompt, else the newest words
// of a user.
//
// Passages change from question to question, and what stands behind them is paid
// for again by whoever caches prefixes, so they stand as far back as they can:
// in front of the newest user message, for that is the question, or at the end
// where the host will put the prompt behind the window. They never stand in a
// tool group.
func ask(prompt string, m *material, in window.Input, plan window.Plan) (question, bool) {
	user, speaker, open := -1, int64(0), false
	for i, it := range plan.Items {
		if it.Kind != window.KindMessage {
			continue
		}
		e, ok := entryAt(in.Entries, it.Seq)
		if !ok {
			continue
		}
		open = open || it.Reason == window.OpenCall
		if e.Role == message.User && (user < 0 || it.Seq > plan.Items[user].Seq) {
			user = i
		}
		if e.Role == message.User || e.Flags.Has(message.UserText) {
			speaker = max(speaker, it.Seq)
		}
	}
	q := question{text: strings.TrimSpace(prompt), speaker: speaker}
	said := ""
	if speaker > 0 {
		said = spoken(m.bodies[speaker])
	}
	if q.text == "" {
		q.text = said
	}
	// The prompt is in the log where the host stores a message before it asks.
	logged := said != "" && (strings.Contains(said, q.text) || strings.Contains(q.text, said))
	switch {
	case user >= 0 && (logged || open || user == len(plan.Items)-1):
		q.before, q.at = plan.Items[user].Seq, user
	case logged || open:
		return q, false
	default:
		q.at = len(plan.Items)
	}
	var ok bool
	q.query, ok = queryOf(q.text)
	return q, ok
}

func entryAt(entries []window.Entry, place int64) (window.Entry, bool) {
	i, ok := slices.BinarySearchFunc(entries, place, func(e window.Entry, place int64) int {
		return int(min(max(e.Seq-place, -1), 1))
	})
	if !ok {
		return window.Entry{}, false
	}
	return entries[i], true
}

// spoken is the text of a message beside results and calls.
func spoken(body []byte) string {
	m, err := message.Read(body)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(textOf(&m, false))
}

// questionWords is how many words of a long prompt are looked for: the first and
// the last say what it is about.
const questionWords = 40

// queryOf reads a text as a question; false where it asks for nothing that could
// be found.
func queryOf(text string) (search.Query, bool) {
	text = strings.ReplaceAll(search.Clean(text), `"`, " ") // a quote would make a phrase of all behind it
	words := strings.Fields(text)
	for most := questionWords; most > 0; most /= 2 {
		some := words
		if len(some) > most {
			some = slices.Concat(words[:most/2], words[len(words)-most/2:])
		}
		q, err := search.Parse(strings.Join(some, " "))
		if err != nil {
			continue
		}
		return q, !search.Vague(q)
	}
	return search.Query{}, false
}

func (q *question) hash(m *material, room int) [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%v %d %d %d %d %s", m.sid, m.epoch, q.speaker, room, q.factor, q.text))
}

// recallable are the places of the path's messages that the window does not
// show: what summaries cover, and what was trimmed.
func recallable(m *material, in window.Input, plan window.Plan) []events.Range {
	shown := make(map[int64]struct{}, len(plan.Items))
	for _, it := range plan.Items {
		shown[it.Seq] = struct{}{}
	}
	covers := func(after, before int64) bool {
		for i := range m.state.Live {
			if slices.ContainsFunc(m.state.Live[i].Covers, func(c events.Range) bool { return c.From < before && c.To > after }) {
				return true
			}
		}
		return false
	}
	out := make([]events.Range, 0, len(m.state.Path))
	for _, p := range m.state.Path {
		if p.To = min(p.To, m.head); p.From <= p.To {
			out = append(out, p)
		}
	}
	// Runs of what is shown, and of what of the tail is left out for a reason.
	hole := events.Range{}
	for i := range in.Entries {
		e := &in.Entries[i]
		if _, ok := shown[e.Seq]; !ok && e.Seq < plan.TrimFrom {
			if hole.To > 0 {
				out = without(out, hole)
			}
			hole = events.Range{}
			continue
		}
		switch {
		case hole.To > 0 && !covers(hole.To, e.Seq):
			hole.To = e.Seq
		case hole.To > 0:
			out = without(out, hole)
			hole = events.Range{From: e.Seq, To: e.Seq}
		default:
			hole = events.Range{From: e.Seq, To: e.Seq}
		}
	}
	if hole.To > 0 {
		out = without(out, events.Range{From: hole.From, To: m.head})
	}
	return out
}
