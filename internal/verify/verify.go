package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/store"
)

// Source is where sessions are read.
type Source interface {
	SessionsAfter(ctx context.Context, after store.SessionID, limit int) ([]store.SessionID, error)
	StrayDebts(ctx context.Context, limit int) ([]store.SessionID, error)
	InSnapshot(ctx context.Context, id store.SessionID, fn func(*store.Snapshot) error) error
}

// Difference is something stored that the log does not bear out.
type Difference struct {
	Tenant     string `json:"tenant"`
	SessionKey string `json:"sessionKey"`
	SID        string `json:"sid"`
	// What names the projection, Detail says how it differs.
	What   string `json:"what"`
	Detail string `json:"detail"`
}

// Progress is how far a run has come. Failed counts sessions that could not be
// read to their end.
type Progress struct{ Sessions, Events, Differences, Failed int64 }

const (
	sessionPage = 200
	eventPage   = 500
	pageBytes   = 1 << 20
	// mostFaults is how many differences of one session are told.
	mostFaults = 20
)

// All verifies every session of every tenant. found is told each difference,
// progress after each session. A session that cannot be read to its end is a
// difference of its own, and keeps none of the others from being verified.
func All(ctx context.Context, src Source, found func(Difference) error, progress func(Progress)) (Progress, error) {
	var p Progress
	report := func(id store.SessionID, faults []fault) error {
		for _, f := range faults {
			p.Differences++
			err := found(Difference{Tenant: id.Tenant, SessionKey: id.Key, SID: id.SID.String(), What: f.what, Detail: f.detail})
			if err != nil {
				return err
			}
		}
		return nil
	}
	for after, more := (store.SessionID{}), true; more; {
		page, err := src.SessionsAfter(ctx, after, sessionPage)
		if err != nil {
			return p, err
		}
		for _, id := range page {
			after = id
			c := &checker{}
			err := src.InSnapshot(ctx, id, func(v *store.Snapshot) error { return c.session(ctx, v) })
			if errors.Is(err, contextengine.ErrUnknownSession) {
				continue // erased meanwhile
			}
			if err != nil {
				err = fmt.Errorf("session %s: %w", id.SID, err)
				if ctx.Err() != nil || errors.Is(err, store.ErrUnavailable) {
					return p, err
				}
				p.Failed++
				c.faults = append(c.faults, fault{"unread", err.Error()})
			}
			p.Sessions, p.Events = p.Sessions+1, p.Events+c.events
			if err := report(id, c.faults); err != nil {
				return p, err
			}
			progress(p)
		}
		more = len(page) == sessionPage
	}
	stray, err := src.StrayDebts(ctx, mostFaults)
	if err != nil {
		return p, err
	}
	for _, id := range stray {
		if err := report(id, []fault{{"debt", "of a session that does not exist"}}); err != nil {
			return p, err
		}
	}
	progress(p)
	return p, nil
}

type fault struct{ what, detail string }

// checker compares one session.
type checker struct {
	faults []fault
	events int64
	states []store.RecordedState
	// summaries are the bodies of summary events, without their texts, by seq.
	summaries map[int64]events.LiveSummary
	// shorter has the message of each event with a shorter form, both by place.
	shorter map[int64]int64
	line    events.Line
	// newest is the last event; behind is the last message where no step came
	// after it.
	newest store.Logged
	behind events.Event
	// dialect is that of the first message that tells.
	dialect int
}

func (c *checker) differf(what, format string, args ...any) {
	if len(c.faults) < mostFaults {
		c.faults = append(c.faults, fault{what, fmt.Sprintf(format, args...)})
	}
}

func (c *checker) session(ctx context.Context, v *store.Snapshot) error {
	s, err := v.Session(ctx)
	if err != nil {
		return err
	}
	if c.states, err = v.States(ctx); err != nil {
		return err
	}
	c.checkStates()
	c.summaries, c.shorter = make(map[int64]events.LiveSummary), make(map[int64]int64)
	for {
		page, err := v.Log(ctx, c.newest.Seq, eventPage, pageBytes)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			break
		}
		for i := range page {
			c.event(&page[i])
		}
	}
	c.row(s)
	keys, err := v.KeyFaults(ctx, mostFaults)
	if err != nil {
		return err
	}
	for _, k := range keys {
		c.differf("key", "%s", k)
	}
	epoch, owes, err := v.Debt(ctx)
	if err != nil {
		return err
	}
	if owes && epoch > s.Epoch {
		c.differf("debt", "of epoch %d, the session is in %d", epoch, s.Epoch)
	}
	return nil
}

// checkStates holds the recorded states to being one an epoch.
func (c *checker) checkStates() {
	for i, st := range c.states {
		if st.Err != nil {
			c.differf("state", "as of seq %d: %v", st.AsOf, st.Err)
			continue
		}
		want := int64(2)
		if i > 0 {
			want = c.states[i-1].Epoch + 1
		} else if st.AsOf == 1 && st.Epoch == 1 {
			want = 1 // what a fork begins with
		}
		if st.Epoch != want {
			c.differf("state", "as of seq %d is of epoch %d, want %d", st.AsOf, st.Epoch, want)
		}
		c.line = st.Line
	}
}

// at is the state that held when an event was appended.
func (c *checker) at(seq int64) (store.RecordedState, bool) {
	i, _ := slices.BinarySearchFunc(c.states, seq, func(st store.RecordedState, seq int64) int { return int(st.AsOf - seq) })
	if i == 0 {
		return store.RecordedState{State: events.FirstState()}, false
	}
	return c.states[i-1], true
}

// stepAt is the state that an event began, if it did.
func (c *checker) stepAt(seq int64) (store.RecordedState, bool) {
	i, ok := slices.BinarySearchFunc(c.states, seq, func(st store.RecordedState, seq int64) int { return int(st.AsOf - seq) })
	if !ok {
		return store.RecordedState{}, false
	}
	return c.states[i], true
}

func (c *checker) event(e *store.Logged) {
	c.events++
	if want := c.newest.Seq + 1; e.Seq != want {
		c.differf("log", "seq %d follows %d", e.Seq, c.newest.Seq)
	}
	before, _ := c.at(e.Seq)
	if before.Err == nil && e.Epoch != before.Epoch {
		c.differf("log", "seq %d is of epoch %d, the states say %d", e.Seq, e.Epoch, before.Epoch)
	}
	switch {
	case !e.Found:
		c.differf("body", "seq %d: its body is missing", e.Seq)
	case !e.Intact:
		c.differf("body", "seq %d: its body is not the one that was stored", e.Seq)
	case e.Type == events.MessageAppended:
		c.message(e)
	case e.Type == events.SummaryCreated:
		c.summary(e)
	case e.Type == events.MessageSuperseded:
		c.superseded(e)
	}
	if st, steps := c.stepAt(e.Seq); steps {
		c.behind = events.Event{}
		if e.Type == events.EpochRotated && e.Found && st.Err == nil {
			c.rotated(e, st)
		}
	} else if e.Type == events.EpochRotated {
		c.differf("state", "the epoch that began at seq %d has none", e.Seq)
	}
	c.newest = *e
	c.newest.Body = nil
}

// summary keeps what states repeat of a summary.
func (c *checker) summary(e *store.Logged) {
	var b events.SummaryBody
	if err := json.Unmarshal(e.Body, &b); err != nil {
		c.differf("log", "summary %d: %v", e.Seq, err)
		return
	}
	c.summaries[c.line.Place(e.Seq)] = events.LiveSummary{
		Level: b.Level, Tokens: b.Tokens, Covers: b.Covers, CoveredTokens: b.CoveredTokens, Timestamp: b.Timestamp,
	}
}

// superseded keeps what states repeat of a shorter form.
func (c *checker) superseded(e *store.Logged) {
	var b events.MessageSupersededBody
	if err := json.Unmarshal(e.Body, &b); err != nil {
		c.differf("log", "message.superseded %d: %v", e.Seq, err)
		return
	}
	c.shorter[c.line.Place(e.Seq)] = b.Seq
}

// rotated compares a state with the event that began it and the summaries that
// it names.
func (c *checker) rotated(e *store.Logged, st store.RecordedState) {
	var b events.EpochRotatedBody
	if err := json.Unmarshal(e.Body, &b); err != nil {
		c.differf("log", "epoch.rotated %d: %v", e.Seq, err)
		return
	}
	live := make([]int64, 0, len(st.Live))
	for _, l := range st.Live {
		live = append(live, l.Seq)
		s, own := c.summaries[l.Seq]
		if own && (s.Level != l.Level || s.Tokens != l.Tokens || s.CoveredTokens != l.CoveredTokens ||
			s.Timestamp != l.Timestamp || !slices.Equal(s.Covers, l.Covers)) {
			c.differf("state", "as of seq %d: the summary at %d is not as its event says", st.AsOf, l.Seq)
		}
		if !own && l.Seq > c.line.Base() {
			c.differf("state", "as of seq %d: there is no summary at %d", st.AsOf, l.Seq)
		}
	}
	for _, x := range st.Superseded {
		if of := c.shorter[x.By]; of != x.Seq && x.By > c.line.Base() {
			c.differf("state", "as of seq %d: there is no shorter form of the message at %d at %d", st.AsOf, x.Seq, x.By)
		}
	}
	// An ancestor's erasure takes summaries out of recorded states.
	erased := len(st.Line) > 0 && st.Line[0].SID == (events.SID{})
	switch {
	case b.Epoch != st.Epoch || b.Cause != st.Cause || b.FactorMilli != st.FactorMilli:
		c.differf("state", "as of seq %d: epoch %d, cause %q, factor %d; its event says %d, %q, %d",
			st.AsOf, st.Epoch, st.Cause, st.FactorMilli, b.Epoch, b.Cause, b.FactorMilli)
	case !slices.Equal(live, b.Live) && !erased:
		c.differf("state", "as of seq %d: live summaries %v; its event says %v", st.AsOf, live, b.Live)
	}
}
