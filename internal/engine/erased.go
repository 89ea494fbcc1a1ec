package engine

import (
	"context"
	"errors"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/store"
)

// sameLife refuses a step that was planned on another life of the session: one
// that was erased, and whose epochs count from 1 as the new one's do.
func sameLife(planned store.View, build stepper) stepper {
	return func(cur store.Session, state events.State, firstSeq int64) (store.EpochStep, error) {
		if cur.SID != planned.SID {
			return store.EpochStep{}, &contextengine.EpochConflictError{Expected: planned.Epoch, Epoch: cur.Epoch}
		}
		return build(cur, state, firstSeq)
	}
}

// ofModel has the step's debt follow the threshold of the session's model.
func ofModel(model string, build stepper) stepper {
	return func(cur store.Session, state events.State, firstSeq int64) (store.EpochStep, error) {
		step, err := build(cur, state, firstSeq)
		step.Model = model
		return step, err
	}
}

// underLease has the step refused once the lease is another's or over.
func underLease(token string, build stepper) stepper {
	return func(cur store.Session, state events.State, firstSeq int64) (store.EpochStep, error) {
		step, err := build(cur, state, firstSeq)
		step.LeaseToken = token
		return step, err
	}
}

// notErased refuses a step on a life that was erased, also where a new one
// lives under the key; read is what reading the session said. The store holds
// appends to the same rule.
func (l *Lossless) notErased(ctx context.Context, s contextengine.Session, read error) error {
	if read == nil && s.SessionID == "" || read != nil && !errors.Is(read, contextengine.ErrUnknownSession) {
		return read
	}
	erased, err := l.cfg.Log.Erased(ctx, s.Tenant, s.SessionKey, s.SessionID)
	switch {
	case err != nil:
		return err
	case erased:
		return contextengine.ErrSessionErased
	}
	return read
}

// unlessErased explains a failure by the session's end, where its rows went
// while a call was reading them, or by that of an ancestor: an epoch conflict,
// since the session has forgotten it by now. Any other failure stays as it is.
func (c Config) unlessErased(ctx context.Context, s store.Session, err error) error {
	if err == nil || ctx.Err() != nil || errors.Is(err, store.ErrUnavailable) {
		return err
	}
	now, look := c.Log.Session(ctx, s.Tenant, s.Key)
	if errors.Is(look, contextengine.ErrUnknownSession) || look == nil && now.SID != s.SID {
		return contextengine.ErrUnknownSession
	}
	if look == nil && now.Epoch != s.Epoch {
		return &contextengine.EpochConflictError{Expected: s.Epoch, Epoch: now.Epoch}
	}
	return err
}
