package rebuild

import (
	"context"
	"errors"
	"fmt"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/store"
)

// What is a set of things to rebuild.
type What uint8

// The things that a session's log tells.
const (
	// Facts of events: epoch, role, tokens, flags, links, offsets.
	Facts What = 1 << iota
	// States are the recorded states, the session's row and its debt.
	States
	// Keys identify events.
	Keys

	All = Facts | States | Keys
)

// Store is where sessions are read and repaired.
type Store interface {
	SessionsAfter(ctx context.Context, after store.SessionID, limit int) ([]store.SessionID, error)
	SessionsOfKey(ctx context.Context, key string) ([]store.SessionID, error)
	StrayDebts(ctx context.Context, limit int) ([]store.SessionID, error)
	DropStrayDebts(ctx context.Context) (int64, error)
	InSnapshot(ctx context.Context, id store.SessionID, fn func(*store.Snapshot) error) error
	InRepair(ctx context.Context, id store.SessionID, fn func(*store.Repair) error) error
	Owing(cur store.Session, model string) (store.Debt, bool)
}

// Failed is what a Change says of a session that could not be rebuilt.
const Failed = "failed"

// Options say what is rebuilt.
type Options struct {
	// What is All where zero.
	What What
	// Session is a key, of whatever tenant; empty is every session.
	Session string
	// DryRun writes nothing.
	DryRun bool
}

// Change is a difference between a log and what is stored beside it.
type Change struct {
	Tenant     string `json:"tenant"`
	SessionKey string `json:"sessionKey"`
	SID        string `json:"sid"`
	What       string `json:"what"`
	Detail     string `json:"detail"`
	// Derivable: the log tells what belongs there. What it does not tell stays as
	// it is and is to be had from a backup only.
	Derivable bool `json:"derivable"`
}

// Progress is how far a run has come. Repaired counts sessions, Failed those that
// could not be read or written to the end.
type Progress struct{ Sessions, Events, Repaired, Changes, Lost, Failed int64 }

const (
	sessionPage = 200
	eventPage   = 500
	pageBytes   = 1 << 20
	// writePage is how many events one statement rewrites.
	writePage = 1000
	// mostKeys bounds the keys of a session that one run looks at.
	mostKeys = 10_000
	// mostTold is how many differences of one session are told one by one.
	mostTold = 20
)

// Run rebuilds sessions one by one. found is told each difference, progress
// after each session. One that cannot be rebuilt is told of as well, and keeps none
// of the others from it.
func Run(ctx context.Context, s Store, o Options, found func(Change) error, progress func(Progress)) (Progress, error) {
	if o.What == 0 {
		o.What = All
	}
	r := &runner{store: s, opts: o, found: found, progress: progress}
	if o.Session != "" {
		ids, err := s.SessionsOfKey(ctx, o.Session)
		if err == nil && len(ids) == 0 {
			err = contextengine.ErrUnknownSession
		}
		return r.done, errors.Join(err, r.sessions(ctx, ids))
	}
	for after, more := (store.SessionID{}), true; more; {
		page, err := s.SessionsAfter(ctx, after, sessionPage)
		if err == nil {
			err = r.sessions(ctx, page)
		}
		if err != nil {
			return r.done, err
		}
		if more = len(page) == sessionPage; more {
			after = page[len(page)-1]
		}
	}
	return r.done, r.strays(ctx)
}

type runner struct {
	store    Store
	opts     Options
	found    func(Change) error
	progress func(Progress)
	done     Progress
}

func (r *runner) sessions(ctx context.Context, ids []store.SessionID) error {
	for _, id := range ids {
		err := r.session(ctx, id)
		if errors.Is(err, contextengine.ErrUnknownSession) {
			continue // erased meanwhile
		}
		if err != nil {
			err = fmt.Errorf("session %s: %w", id.SID, err)
			if ctx.Err() != nil || errors.Is(err, store.ErrUnavailable) {
				return err
			}
			r.done.Sessions, r.done.Failed = r.done.Sessions+1, r.done.Failed+1
			if err := r.tell(id, []note{{Failed, err.Error(), true}}); err != nil {
				return err
			}
		}
		r.progress(r.done)
	}
	return nil
}

func (r *runner) session(ctx context.Context, id store.SessionID) error {
	var f *fold
	err := r.store.InSnapshot(ctx, id, func(v *store.Snapshot) (err error) {
		f, err = r.fold(ctx, v)
		return err
	})
	if err != nil {
		return err
	}
	if f.changes() && !r.opts.DryRun {
		first := f
		early, err := r.writeEarly(ctx, id, f)
		if err != nil {
			return err
		}
		err = r.store.InRepair(ctx, id, func(w *store.Repair) (err error) {
			// As it is now that nobody else writes to it.
			if f, err = r.fold(ctx, &w.Snapshot); err != nil {
				return err
			}
			return f.write(ctx, w)
		})
		if err != nil {
			return err
		}
		if early {
			f.notes = told(first.notes, f.notes)
		}
		r.done.Repaired++
	}
	r.done.Sessions, r.done.Events = r.done.Sessions+1, r.done.Events+f.read
	return r.tell(id, f.notes)
}

func (r *runner) tell(id store.SessionID, notes []note) error {
	for _, n := range notes {
		if r.done.Changes++; !n.derivable {
			r.done.Lost++
		}
		err := r.found(Change{
			Tenant: id.Tenant, SessionKey: id.Key, SID: id.SID.String(), What: n.what, Detail: n.detail, Derivable: n.derivable,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// strays are debts that no session can pay.
func (r *runner) strays(ctx context.Context) error {
	if r.opts.What&States == 0 {
		return nil
	}
	ids, err := r.store.StrayDebts(ctx, mostTold)
	if err != nil || len(ids) == 0 {
		return err
	}
	for _, id := range ids {
		if err := r.tell(id, []note{{"debt", "of a session that does not exist", true}}); err != nil {
			return err
		}
	}
	if r.opts.DryRun {
		return nil
	}
	_, err = r.store.DropStrayDebts(ctx)
	return err
}
