package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/store/db"
)

// ErrLineChanged: an ancestor was erased while a fork was being planned.
var ErrLineChanged = errors.New("an ancestor was erased meanwhile")

// Kind tells how a session descends from its parent. The numbers are stored.
type Kind int16

// The kinds of descent.
const (
	KindFork Kind = iota + 1
	KindIsolated
	KindForkedSubagent
)

// NewChild is a session that begins under another one.
type NewChild struct {
	Tenant, Key string
	HostSession string
	// Parent is one life of a session, and ParentSeq its head then.
	Parent    uuid.UUID
	ParentKey string
	ParentSeq int64
	Kind      Kind
	// Events begin its log; where it inherits, the first is the forked event.
	Events []NewEvent
	// Start is what it inherits; nil for nothing.
	Start *ChildStart
	// PreparationID and TTL are a sub-agent's.
	PreparationID string
	TTL           time.Duration
}

// ChildStart is the state that a fork begins in.
type ChildStart struct {
	State       events.State
	LeafOffset  int64
	HoldOffset  int64
	TokenBudget int64
	Dialect     message.Dialect
}

// OpenChild begins a session under another one. It is one transaction whose cost
// does not depend on the parent's history: the child copies nothing. The
// ancestors are locked against their erasure meanwhile.
func (s *Store) OpenChild(ctx context.Context, c *NewChild) (Appended, error) {
	var out Appended
	err := s.within(ctx, c.Tenant, func(q *db.Queries) error {
		sealed, err := lockChild(ctx, q, c)
		if err != nil {
			return err
		}
		_, err = q.SessionByKey(ctx, db.SessionByKeyParams{TenantID: c.Tenant, SessionKey: c.Key})
		if err == nil {
			return contextengine.ErrSessionExists
		} else if !errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("session: %w", err)
		}
		it := &Item{Tenant: c.Tenant, SessionKey: c.Key, Create: true, HostSession: c.HostSession, Events: c.Events, ofSealed: sealed}
		if it, err = s.sealTo(ctx, Session{}, false, it); err != nil {
			return err
		}
		outs, err := run(ctx, q, s.params([]*Item{it}, false))
		if err != nil {
			return fmt.Errorf("append: %w", err)
		}
		if out, err = outs[0].result(it); err != nil {
			return err
		}
		if c.Start != nil {
			if err := seed(ctx, q, c, out.SID); err != nil {
				return err
			}
		}
		return q.AddLineage(ctx, db.AddLineageParams{
			TenantID: c.Tenant, SID: out.SID, ParentSID: c.Parent, ParentKey: c.ParentKey, Kind: int16(c.Kind),
			AtSeq: c.ParentSeq, PreparationID: c.PreparationID, TtlSeconds: c.TTL.Seconds(),
		})
	})
	return out, errUnavailable(err)
}

// lockChild locks the new key and looks whether the ancestors still live, and
// whether any of them is encrypted.
func lockChild(ctx context.Context, q *db.Queries, c *NewChild) (sealed bool, err error) {
	sids, keys := []uuid.UUID{c.Parent}, []string{c.ParentKey}
	if c.Start != nil {
		for _, seg := range c.Start.State.Line {
			if seg.SID != (events.SID{}) && uuid.UUID(seg.SID) != c.Parent {
				sids, keys = append(sids, uuid.UUID(seg.SID)), append(keys, seg.SessionKey)
			}
		}
	}
	if err := q.LockLine(ctx, db.LockLineParams{TenantID: c.Tenant, ChildKey: c.Key, AncestorKeys: keys}); err != nil {
		return false, fmt.Errorf("lock: %w", err)
	}
	for _, check := range []struct {
		sids []uuid.UUID
		gone error
	}{{sids[:1], contextengine.ErrUnknownSession}, {sids[1:], ErrLineChanged}} {
		n, err := q.CountLives(ctx, db.CountLivesParams{TenantID: c.Tenant, Sids: check.sids})
		if err != nil {
			return false, fmt.Errorf("ancestors: %w", err)
		}
		if n.Lives < int64(len(check.sids)) {
			return false, check.gone
		}
		sealed = sealed || n.Sealed
	}
	return sealed, nil
}

func seed(ctx context.Context, q *db.Queries, c *NewChild, sid uuid.UUID) error {
	st := c.Start
	err := q.SeedChild(ctx, db.SeedChildParams{
		TenantID: c.Tenant, SID: sid, LeafOffset: st.LeafOffset,
		BaseOffset: st.LeafOffset - st.State.LiveTokens(st.LeafOffset), HoldOffset: st.HoldOffset,
		FactorMilli: int32(st.State.FactorMilli), TokenBudget: st.TokenBudget, Dialect: int16(st.Dialect),
	})
	if err != nil {
		return fmt.Errorf("child: %w", err)
	}
	body, err := events.EncodeState(st.State)
	if err != nil {
		return err
	}
	err = q.PutState(ctx, db.PutStateParams{TenantID: c.Tenant, SID: sid, AsOf: 1, Epoch: st.State.Epoch, State: body})
	if err != nil {
		return fmt.Errorf("state: %w", err)
	}
	return nil
}
