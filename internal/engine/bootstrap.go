package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/store"
)

// hashPage is how many stored hashes a comparison reads at a time.
const hashPage = 2000

// bootstrapTries bounds how often a bootstrap starts over because somebody
// else wrote meanwhile.
const bootstrapTries = 5

// bootstrap compares the host's whole history with the stored one, skips the
// prefix that is known and appends the rest. A history that is not a
// continuation of what is stored is refused and changes nothing.
func (w *writer) bootstrap(ctx context.Context, p contextengine.BootstrapParams) (contextengine.BootstrapResult, error) {
	evs, err := w.events(p.Messages, false, 0)
	if err != nil {
		return contextengine.BootstrapResult{}, err
	}
	for try := 1; ; try++ {
		res, err := w.takeOver(ctx, p, evs)
		var stale *contextengine.StaleHeadError
		if errors.As(err, &stale) && p.ExpectedHead == nil && try < bootstrapTries {
			continue
		}
		return res, err
	}
}

func (w *writer) takeOver(ctx context.Context, p contextengine.BootstrapParams, evs []store.NewEvent) (contextengine.BootstrapResult, error) {
	v, err := w.cfg.Log.View(ctx, p.Tenant, p.SessionKey, uuid.Nil, 0, 0)
	if err != nil && !errors.Is(err, contextengine.ErrUnknownSession) {
		return contextengine.BootstrapResult{}, err
	}
	res := contextengine.BootstrapResult{Bootstrapped: true, Head: v.Head, Epoch: max(v.Epoch, 1)}
	known, differs, err := w.commonPrefix(ctx, v, store.Lane{Gateway: p.GatewayID, HostSession: p.SessionID}, evs)
	if err != nil {
		return contextengine.BootstrapResult{}, err
	}
	if differs {
		res.Bootstrapped = false
		res.Reason = fmt.Sprintf("the history differs from the stored one at message %d", known)
		return res, nil
	}
	if known == len(evs) {
		if len(evs) == 0 {
			res.Reason = "no messages given"
		} else {
			res.Reason = "already known"
		}
		return res, nil
	}
	it := store.HostItem(p.Session, p.Expectations)
	if it.ExpectedHead == nil {
		it.ExpectedHead = &v.Head
	}
	it.Events = evs[known:]
	a, err := w.cfg.Log.Append(ctx, it)
	if err != nil {
		return contextengine.BootstrapResult{}, err
	}
	res.ImportedMessages, res.Head, res.Epoch = len(it.Events), a.Head, a.Epoch
	return res, nil
}

// commonPrefix counts how many of the messages are stored already. A host's
// history may go on where the active path ends, or it may be the whole log, of
// which a reset or a rewind hid a part: what is hidden is known too, and stays
// hidden. Where several gateways share the session, a host's history is what it
// wrote itself; that of a gateway which never wrote is all new. differs is set
// when the history continues none of them.
func (w *writer) commonPrefix(ctx context.Context, v store.View, lane store.Lane, evs []store.NewEvent) (known int, differs bool, err error) {
	if v.Head == 0 {
		return 0, false, nil
	}
	path, log, own := follower{evs: evs}, follower{evs: evs}, follower{evs: evs}
	joins, others := lane.Gateway != "", false
	line := lineOf(w.cfg.Log, v)
	for after := int64(0); !log.done() || !path.done() || !own.done(); {
		page, err := line.hashes(ctx, after, hashPage)
		if err != nil {
			return 0, false, err
		}
		for _, m := range page {
			after = m.Seq
			log.next(m.Hash)
			if m.Lane == lane {
				own.next(m.Hash)
			} else {
				others = true
			}
			joins = joins && m.Lane.Gateway != "" && m.Lane.Gateway != lane.Gateway
			if v.State.OnPath(m.Seq) {
				path.next(m.Hash)
			}
		}
		if len(page) < hashPage {
			break
		}
	}
	if log.differs && !path.differs {
		// What the path does not show is no part of this history.
		return path.known, false, nil
	}
	if path.differs && log.differs {
		own.differs = own.differs || !others || own.known == 0 && !joins
		if own.differs {
			return max(path.known, log.known), true, nil
		}
		return own.known, false, nil
	}
	return max(path.known, log.known), false, nil
}

// A follower compares a history with stored messages, one after the other.
type follower struct {
	evs     []store.NewEvent
	known   int
	differs bool
}

func (f *follower) done() bool { return f.differs || f.known == len(f.evs) }

func (f *follower) next(stored []byte) {
	switch {
	case f.done():
	case f.evs[f.known].SamePayload(stored):
		f.known++
	default:
		f.differs = true
	}
}
