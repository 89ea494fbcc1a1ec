package store

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/store/db"
	"github.com/engined/engined/internal/vault"
)

// eraseBatch is how many rows of a table go at a time. Rows can be 256 KiB, and
// bodies larger: a batch must stay far below the statement timeout.
const eraseBatch = 500

// Erasure is the receipt of one erased session.
type Erasure struct {
	SID      uuid.UUID
	ErasedAt time.Time
	// Counts are the rows that went, by table.
	Counts map[string]int64
	// Complete is false when rows are left for the sweep. Nobody sees them.
	Complete bool
	// sealed: its key is to be destroyed.
	sealed bool
}

// Erase erases a session. When it returns without an error the session is
// hidden and buried, whatever becomes of the rest: its reads answer as for an
// unknown key and its late writes are refused. ctx bounds how long the rows are
// waited for; what is left then goes with a sweep.
func (s *Store) Erase(ctx context.Context, tenant, key string) (Erasure, error) {
	e, err := s.bury(ctx, tenant, key, nil)
	if err != nil {
		return Erasure{}, err
	}
	return s.empty(ctx, tenant, e), nil
}

// errNotDue: what was to be erased has changed meanwhile.
var errNotDue = errors.New("the session is not due any more")

// bury hides a session at once and for good: its row goes, a tombstone comes,
// and its heirs are told to forget it, in one transaction under the session's
// lock. Forks take that lock too, so none is under way, and none comes any more.
// due, if any, has the last word.
func (s *Store) bury(ctx context.Context, tenant, key string, due func(*db.Queries, Session) (bool, error)) (Erasure, error) {
	var e Erasure
	err := s.within(ctx, tenant, func(q *db.Queries) error {
		// The lock first: every writer of events takes it, so none is under way.
		if err := q.LockSession(ctx, db.LockSessionParams{TenantID: tenant, SessionKey: key}); err != nil {
			return fmt.Errorf("lock: %w", err)
		}
		r, err := q.SessionByKey(ctx, db.SessionByKeyParams{TenantID: tenant, SessionKey: key})
		if err != nil {
			return readErr("session", err)
		}
		row := r.Session
		if due != nil {
			if ok, err := due(q, sessionOf(row)); err != nil || !ok {
				return errors.Join(err, errNotDue)
			}
		}
		if _, err := q.OweForgetting(ctx, db.OweForgettingParams{TenantID: tenant, SID: row.SID}); err != nil {
			return fmt.Errorf("heirs: %w", err)
		}
		if row.Sealed && s.cfg.Vault == nil {
			return vault.ErrClosed // it could not destroy the key
		}
		lives, err := s.hostSessions(ctx, q, tenant, row.SID, row.Head)
		if err != nil {
			return err
		}
		if err := q.DeleteSession(ctx, db.DeleteSessionParams{TenantID: tenant, SID: row.SID}); err != nil {
			return fmt.Errorf("session: %w", err)
		}
		e.SID, e.sealed = row.SID, row.Sealed
		e.ErasedAt, err = q.Bury(ctx, db.BuryParams{TenantID: tenant, SessionKey: key, SID: row.SID, HostSessions: lives, Sealed: row.Sealed})
		if err != nil {
			return fmt.Errorf("tombstone: %w", err)
		}
		return nil
	})
	if err != nil {
		return Erasure{}, fmt.Errorf("erase: %w", errUnavailable(err))
	}
	s.pins.drop(pinKey{tenant, key})
	e.Counts = map[string]int64{"sessions": 1}
	return e, nil
}

// hostSessions are the hashes of all host session ids that a session knew:
// those of columns, and those that only a body names.
func (s *Store) hostSessions(ctx context.Context, q *db.Queries, tenant string, sid uuid.UUID, head int64) ([][]byte, error) {
	names, err := q.KnownHostSessions(ctx, db.KnownHostSessionsParams{TenantID: tenant, SID: sid})
	if err != nil {
		return nil, fmt.Errorf("host sessions: %w", err)
	}
	known := make(map[string]struct{}, len(names))
	for _, n := range names {
		known[n] = struct{}{}
	}
	const most = 1_000_000
	for _, t := range []events.Type{events.HostSessionBound, events.SessionReset} {
		rows, err := q.EventsOfType(ctx, db.EventsOfTypeParams{TenantID: tenant, SID: sid, Type: int16(t), Upto: head, MaxRows: most})
		if err != nil {
			return nil, fmt.Errorf("host sessions: %w", err)
		}
		open := s.openerIn(q, tenant, sid)
		for _, r := range rows {
			body, err := open.event(ctx, r.Seq, r.Body)
			if unreadable(err) {
				continue
			}
			if err != nil {
				return nil, err
			}
			var b struct {
				HostSessionID     string `json:"hostSessionId"`
				NextHostSessionID string `json:"nextHostSessionId"`
			}
			if json.Unmarshal(body, &b) != nil {
				continue // what cannot be read names nobody
			}
			known[b.HostSessionID], known[b.NextHostSessionID] = struct{}{}, struct{}{}
		}
	}
	delete(known, "")
	hashes := make([][]byte, 0, len(known))
	for n := range known {
		h := sha256.Sum256([]byte(n))
		hashes = append(hashes, h[:])
	}
	return hashes, nil
}

// empty deletes the rows of a buried session as far as ctx goes.
func (s *Store) empty(ctx context.Context, tenant string, e Erasure) Erasure {
	counts, err := s.emptyGrave(ctx, tenant, e.SID, e.sealed)
	if err == nil {
		e.Counts, e.Complete = counts, true
		return e
	}
	s.log.Warn("an erased session is not empty yet; a sweep goes on", "sid", e.SID, "error", err)
	// What went so far, if it can still be told.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if raw, err := s.of(tenant).GraveCounts(ctx, db.GraveCountsParams{TenantID: tenant, SID: e.SID}); err == nil {
		if counts, err := decodeCounts(raw); err == nil {
			e.Counts = counts
		}
	}
	return e
}

func (s *Store) emptyGrave(ctx context.Context, tenant string, sid uuid.UUID, sealed bool) (map[string]int64, error) {
	// First: with its key go all copies there are of the session.
	if err := s.destroyKey(ctx, tenant, sid, sealed); err != nil {
		return nil, err
	}
	tables, err := s.everyone.SessionTables(ctx)
	if err != nil {
		return nil, fmt.Errorf("tables: %w", errUnavailable(err))
	}
	for _, table := range tables {
		for {
			n, err := s.of(tenant).EraseRows(ctx, db.EraseRowsParams{TenantID: tenant, SID: sid, TableName: table, MaxRows: eraseBatch})
			if err != nil {
				return nil, fmt.Errorf("erase %s: %w", table, errUnavailable(err))
			}
			if n < eraseBatch {
				break
			}
		}
	}
	// After the rows: one heir that cannot forget must not keep them.
	forks := s.forgetAncestor(ctx, tenant, sid)
	if forks != nil && ctx.Err() != nil {
		return nil, forks
	}
	if err := s.disguiseChildren(ctx, tenant, sid); err != nil {
		return nil, errors.Join(forks, err)
	}
	if err := s.of(tenant).DisguiseKey(ctx, db.DisguiseKeyParams{TenantID: tenant, SID: sid}); err != nil {
		return nil, fmt.Errorf("key: %w", errUnavailable(err))
	}
	if forks != nil {
		return nil, forks
	}
	raw, err := s.of(tenant).Emptied(ctx, db.EmptiedParams{TenantID: tenant, SID: sid})
	if err != nil {
		return nil, fmt.Errorf("receipt: %w", errUnavailable(err))
	}
	return decodeCounts(raw)
}

func (s *Store) destroyKey(ctx context.Context, tenant string, sid uuid.UUID, sealed bool) error {
	switch {
	case s.cfg.Vault != nil:
		return s.cfg.Vault.Destroy(ctx, tenant, sid)
	case sealed:
		return vault.ErrClosed // a process with the keys goes on
	}
	return nil
}

func decodeCounts(raw []byte) (map[string]int64, error) {
	var counts map[string]int64
	if err := json.Unmarshal(raw, &counts); err != nil {
		return nil, fmt.Errorf("receipt: %w", err)
	}
	return counts, nil
}

// EraseMany erases a tenant's sessions whose keys begin with a prefix: first
// all are hidden, then their rows go. It answers with what it did also when it
// fails; calling again goes on.
func (s *Store) EraseMany(ctx context.Context, tenant, prefix string) ([]Erasure, error) {
	const page = 200
	var out []Erasure
	var failed error
	for after := ""; ; {
		keys, err := s.of(tenant).KeysWithPrefix(ctx, db.KeysWithPrefixParams{TenantID: tenant, Prefix: prefix, After: after, MaxRows: page})
		if err != nil {
			return out, readErr("sessions", err)
		}
		for _, key := range keys {
			after = key
			e, err := s.bury(ctx, tenant, key, nil)
			if isUnknown(err) {
				continue // somebody else erased it
			}
			if err != nil {
				if ctx.Err() != nil || errors.Is(err, ErrUnavailable) {
					return out, err
				}
				// One that cannot be erased keeps no other from it.
				s.log.Warn("a session could not be erased", "tenant", tenant, "error", err)
				failed = errors.Join(failed, err)
				continue
			}
			out = append(out, e)
		}
		if len(keys) < page {
			break
		}
	}
	for i := range out {
		out[i] = s.empty(ctx, tenant, out[i])
	}
	return out, failed
}

// SweepErased finishes erasures that were broken off, and looks once more at
// finished ones. It answers how many it looked at. One that cannot be finished is
// logged and comes again in a minute; it keeps no other from being finished.
func (s *Store) SweepErased(ctx context.Context, limit int) (int, error) {
	due, err := s.everyone.DueGraves(ctx, db.DueGravesParams{MaxRows: int32(limit)})
	if err != nil {
		return 0, readErr("tombstones", err)
	}
	for _, g := range due {
		if _, err := s.emptyGrave(ctx, g.TenantID, g.SID, g.Sealed); err != nil {
			if ctx.Err() != nil || errors.Is(err, ErrUnavailable) {
				return 0, err
			}
			s.log.Error("an erased session cannot be emptied; a later sweep tries again", "tenant", g.TenantID, "sid", g.SID, "error", err)
		}
	}
	return len(due), nil
}

// Erased reports whether a write that names this host session ("" for none)
// belongs to an erased life of the session. Append holds its items to it
// already.
func (s *Store) Erased(ctx context.Context, tenant, key, hostSession string) (bool, error) {
	erased, err := s.of(tenant).SessionErased(ctx, db.SessionErasedParams{TenantID: tenant, SessionKey: key, HostSession: hostSession})
	if err != nil {
		return false, readErr("tombstones", err)
	}
	return erased, nil
}
