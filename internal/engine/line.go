package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/window"
)

// line reads what a session shows, by place: its own log and, in front of it,
// what it inherited. A read asks each session of the line once at most, and only
// those that it reaches into; for a session without ancestors that is itself.
type line struct {
	log    Log
	tenant string
	sid    uuid.UUID
	events.Line
}

func lineOf(log Log, v store.View) line { return line{log, v.Tenant, v.SID, v.State.Line} }

func (w *windows) line(s store.Session, m *material) line {
	return line{w.cfg.Log, s.Tenant, m.sid, m.state.Line}
}

// part is one session's stretch of a line, newest first: the places after+1 to
// to, with their seqs counted from after.
type part struct {
	sid       uuid.UUID
	after, to int64
}

// parts are the session's own and its ancestors', without those that are gone.
func (l line) parts() []part {
	out := make([]part, 0, len(l.Line)+1)
	out = append(out, part{l.sid, l.Base(), events.Open})
	for _, s := range slices.Backward(l.Line) {
		if s.SID != (events.SID{}) {
			out = append(out, part{uuid.UUID(s.SID), s.After, s.To})
		}
	}
	return out
}

// facts reads messages' facts, newest first, from upto down to since.
func (l line) facts(ctx context.Context, upto, since int64, limit int) ([]window.Entry, error) {
	var out []window.Entry
	for _, p := range l.parts() {
		first, last := max(since, p.after+1), min(upto, p.to)
		if first > last || len(out) >= limit {
			continue
		}
		page, err := l.log.Facts(ctx, l.tenant, p.sid, last-p.after, first-p.after, limit-len(out))
		if err != nil {
			return nil, err
		}
		if p.after == 0 && out == nil {
			return page, nil
		}
		for _, e := range page {
			e.Seq += p.after
			out = append(out, e)
		}
	}
	return out, nil
}

// recorded reads events of any type, with the time of their recording.
func (l line) recorded(ctx context.Context, places []int64) (map[int64]store.Recorded, error) {
	if len(l.Line) == 0 {
		return l.log.Recorded(ctx, l.tenant, l.sid, places)
	}
	out := make(map[int64]store.Recorded, len(places))
	for _, p := range l.parts() {
		var seqs []int64
		for _, place := range places {
			if p.after < place && place <= p.to {
				seqs = append(seqs, place-p.after)
			}
		}
		if len(seqs) == 0 {
			continue
		}
		found, err := l.log.Recorded(ctx, l.tenant, p.sid, seqs)
		if err != nil {
			return nil, err
		}
		for seq, r := range found {
			out[p.after+seq] = r
		}
	}
	return out, nil
}

func (l line) bodies(ctx context.Context, places []int64) (map[int64][]byte, error) {
	if len(l.Line) == 0 {
		return l.log.Bodies(ctx, l.tenant, l.sid, places)
	}
	found, err := l.recorded(ctx, places)
	if err != nil {
		return nil, err
	}
	out := make(map[int64][]byte, len(found))
	for place, r := range found {
		out[place] = r.Body
	}
	return out, nil
}

// ofType reads events other than messages behind a place and up to another, in
// order, with places for seqs.
func (l line) ofType(ctx context.Context, t events.Type, after, upto int64, limit int) ([]events.Event, error) {
	var out []events.Event
	for _, p := range slices.Backward(l.parts()) {
		first, last := max(after, p.after), min(upto, p.to)
		if first >= last || len(out) >= limit {
			continue
		}
		page, err := l.log.EventsOfType(ctx, l.tenant, p.sid, t, first-p.after, last-p.after, limit-len(out))
		if err != nil {
			return nil, err
		}
		for i := range page {
			page[i].Seq += p.after
		}
		out = append(out, page...)
	}
	return out, nil
}

// count counts the messages in runs of places.
func (l line) count(ctx context.Context, runs []events.Range) (n int64, err error) {
	for _, p := range l.parts() {
		var own []events.Range
		for _, r := range runs {
			if first, last := max(r.From, p.after+1), min(r.To, p.to); first <= last {
				own = append(own, events.Range{From: first - p.after, To: last - p.after})
			}
		}
		if len(own) == 0 {
			continue
		}
		part, err := l.log.CountMessages(ctx, l.tenant, p.sid, own)
		if err != nil {
			return 0, err
		}
		n += part
	}
	return n, nil
}

// budget is the newest that a turn reported up to a place; 0 for none.
func (l line) budget(ctx context.Context, upto int64) (budget int, err error) {
	err = l.turnEnds(ctx, upto, func(b events.TurnCompletedBody) bool {
		budget = b.TokenBudget
		return budget > 0
	})
	return budget, err
}

// turnEnds shows the turns' ends up to a place, newest first, until enough is
// true.
func (l line) turnEnds(ctx context.Context, upto int64, enough func(events.TurnCompletedBody) bool) error {
	for _, p := range l.parts() {
		for last := min(upto, p.to) - p.after; last > 0; {
			seq, body, err := l.log.NewestOfType(ctx, l.tenant, p.sid, events.TurnCompleted, last)
			if err != nil {
				return err
			}
			if seq == 0 {
				break
			}
			var b events.TurnCompletedBody
			if err := json.Unmarshal(body, &b); err != nil {
				return fmt.Errorf("turn.completed %d: %w", seq, err)
			}
			if enough(b) {
				return nil
			}
			last = seq - 1
		}
	}
	return nil
}

// dialect is that of the oldest message up to a place that tells.
func (l line) dialect(ctx context.Context, upto int64) (message.Dialect, error) {
	parts := l.parts()
	for _, p := range slices.Backward(parts) {
		if upto <= p.after {
			break
		}
		d, err := l.log.DialectAsOf(ctx, l.tenant, p.sid, min(upto, p.to)-p.after)
		if err != nil || d != message.Neutral {
			return d, err
		}
	}
	return message.Neutral, nil
}

// hashes reads the payload hashes of messages behind a place, in order.
func (l line) hashes(ctx context.Context, after int64, limit int) ([]store.MessageHash, error) {
	var out []store.MessageHash
	parts := l.parts()
	for i := len(parts) - 1; i >= 0 && len(out) < limit; i-- {
		p := parts[i]
		if after >= p.to {
			continue
		}
		page, err := l.log.MessageHashes(ctx, l.tenant, p.sid, max(after-p.after, 0), limit-len(out))
		if err != nil {
			return nil, err
		}
		for _, h := range page {
			if h.Seq += p.after; h.Seq <= p.to {
				out = append(out, h)
			}
		}
	}
	return out, nil
}

// caller finds the newest message before a place that makes a call; the zero
// entry when there is none.
func (l line) caller(ctx context.Context, callID string, before int64) (window.Entry, error) {
	for _, p := range l.parts() {
		if before <= p.after+1 {
			continue
		}
		if p.to < before {
			before = p.to + 1
		}
		e, err := l.log.Caller(ctx, l.tenant, p.sid, callID, before-p.after)
		if err != nil {
			return window.Entry{}, err
		}
		if e.Seq > 0 {
			e.Seq += p.after
			return e, nil
		}
	}
	return window.Entry{}, nil
}

// ownHead is the seq in the session's own log up to which the material goes.
func (m *material) ownHead() int64 { return m.head - m.state.Line.Base() }

// named puts seqs in the place of places.
func (m *material) named(over *contextengine.OverBudget) *contextengine.OverBudget {
	if over == nil || len(m.state.Line) == 0 {
		return over
	}
	out := *over
	out.Items = make([]contextengine.OverBudgetItem, len(over.Items))
	for i, it := range over.Items {
		seg, seq, _ := m.state.Line.Locate(it.Seq)
		out.Items[i] = contextengine.OverBudgetItem{Seq: seq, SessionKey: seg.SessionKey, Tokens: it.Tokens}
	}
	return &out
}

func (m *material) explain(plan window.Plan) []contextengine.Explanation {
	out := make([]contextengine.Explanation, 0, len(plan.Items)+len(plan.LeftOut))
	add := func(place int64, e contextengine.Explanation) {
		seg, seq, _ := m.state.Line.Locate(place)
		e.Seq, e.SessionKey = seq, seg.SessionKey
		out = append(out, e)
	}
	for _, it := range plan.Items {
		add(it.Seq, contextengine.Explanation{Kind: it.Kind.String(), Tokens: it.Tokens, Shown: true, Reason: it.Reason.String()})
	}
	for _, l := range plan.LeftOut {
		add(l.Seq, contextengine.Explanation{Kind: l.Kind.String(), Tokens: l.Tokens, Reason: l.Reason.String()})
	}
	return out
}
