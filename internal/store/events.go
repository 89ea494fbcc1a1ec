package store

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/store/db"
	"github.com/engined/engined/internal/window"
)

// Facts reads messages' facts, newest first, from upto down to since.
func (s *Store) Facts(ctx context.Context, tenant string, sid uuid.UUID, upto, since int64, limit int) ([]window.Entry, error) {
	rows, err := s.of(tenant).FactsBefore(ctx, db.FactsBeforeParams{
		TenantID: tenant, SID: sid, Upto: upto, Since: since, MaxRows: int32(limit),
	})
	if err != nil {
		return nil, readErr("facts", err)
	}
	out := make([]window.Entry, len(rows))
	for i, r := range rows {
		if out[i], err = entryOf(r.Seq, r.Role, r.Tokens, r.Flags, r.Links, r.OffsetTokens); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Bodies reads the bytes of events of any type.
func (s *Store) Bodies(ctx context.Context, tenant string, sid uuid.UUID, seqs []int64) (map[int64][]byte, error) {
	rows, err := s.of(tenant).Bodies(ctx, db.BodiesParams{TenantID: tenant, SID: sid, Seqs: seqs})
	if err != nil {
		return nil, readErr("bodies", err)
	}
	out := make(map[int64][]byte, len(rows))
	open := s.opener(tenant, sid)
	for _, r := range rows {
		if out[r.Seq], err = open.event(ctx, r.Seq, r.Body); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Recorded is an event's bytes and when the log took them.
type Recorded struct {
	Body []byte
	At   time.Time
}

// Recorded reads the same as Bodies, and when each event was recorded.
func (s *Store) Recorded(ctx context.Context, tenant string, sid uuid.UUID, seqs []int64) (map[int64]Recorded, error) {
	rows, err := s.of(tenant).Bodies(ctx, db.BodiesParams{TenantID: tenant, SID: sid, Seqs: seqs})
	if err != nil {
		return nil, readErr("bodies", err)
	}
	out := make(map[int64]Recorded, len(rows))
	open := s.opener(tenant, sid)
	for _, r := range rows {
		body, err := open.event(ctx, r.Seq, r.Body)
		if err != nil {
			return nil, err
		}
		out[r.Seq] = Recorded{Body: body, At: r.RecordedAt}
	}
	return out, nil
}

// Events reads a session's log after a seq, every type, bodies included.
func (s *Store) Events(ctx context.Context, tenant string, sid uuid.UUID, after int64, limit int) ([]events.Event, error) {
	return s.EventsWithin(ctx, tenant, sid, after, limit, math.MaxInt64)
}

// EventsWithin is Events that stops behind the body with which maxBytes of
// bodies are reached: fewer than limit rows that hold less are the log's end.
func (s *Store) EventsWithin(ctx context.Context, tenant string, sid uuid.UUID, after int64, limit int, maxBytes int64) ([]events.Event, error) {
	rows, err := s.of(tenant).EventsAfter(ctx, db.EventsAfterParams{
		TenantID: tenant, SID: sid, After: after, MaxRows: int32(limit), MaxBytes: max(maxBytes, 1),
	})
	if err != nil {
		return nil, readErr("events", err)
	}
	if slices.ContainsFunc(rows, func(r db.EventsAfterRow) bool { return r.Forgets }) {
		// Reading the session has it forget.
		if _, err := s.SessionBySID(ctx, tenant, sid); err != nil && !isUnknown(err) {
			return nil, err
		}
		return s.EventsWithin(ctx, tenant, sid, after, limit, maxBytes)
	}
	out := make([]events.Event, len(rows))
	open := s.opener(tenant, sid)
	for i, r := range rows {
		facts, err := factsOf(r.Role, r.Tokens, r.Flags, r.Links)
		if err != nil {
			return nil, err
		}
		body, err := open.event(ctx, r.Seq, r.Body)
		if err != nil {
			return nil, err
		}
		out[i] = events.Event{
			Seq: r.Seq, Type: events.Type(r.Type), ParentSeq: r.ParentSeq, Epoch: r.Epoch, Gateway: r.Gateway,
			HostSessionID: r.HostSessionID, Body: body, RecordedAt: r.RecordedAt,
			ReaderVersion: r.ReaderVersion, Facts: facts, Offset: r.OffsetTokens,
		}
	}
	return out, nil
}

// EventsOfType reads the events of one type other than messages, in seq order.
func (s *Store) EventsOfType(ctx context.Context, tenant string, sid uuid.UUID, t events.Type, after, upto int64, limit int) ([]events.Event, error) {
	rows, err := s.of(tenant).EventsOfType(ctx, db.EventsOfTypeParams{
		TenantID: tenant, SID: sid, Type: int16(t), After: after, Upto: upto, MaxRows: int32(limit),
	})
	if err != nil {
		return nil, readErr("events", err)
	}
	out := make([]events.Event, len(rows))
	open := s.opener(tenant, sid)
	for i, r := range rows {
		body, err := open.event(ctx, r.Seq, r.Body)
		if err != nil {
			return nil, err
		}
		out[i] = events.Event{
			Seq: r.Seq, Type: events.Type(r.Type), ParentSeq: r.ParentSeq, Epoch: r.Epoch, Gateway: r.Gateway,
			HostSessionID: r.HostSessionID, Body: body, RecordedAt: r.RecordedAt,
		}
	}
	return out, nil
}

// NewestOfType reads the newest event of a type at or before a seq; seq 0
// when there is none.
func (s *Store) NewestOfType(ctx context.Context, tenant string, sid uuid.UUID, t events.Type, upto int64) (seq int64, body []byte, err error) {
	r, err := s.of(tenant).NewestOfType(ctx, db.NewestOfTypeParams{TenantID: tenant, SID: sid, Type: int16(t), Upto: upto})
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil, nil
	}
	if err != nil {
		return 0, nil, readErr("events", err)
	}
	if body, err = s.opener(tenant, sid).event(ctx, r.Seq, r.Body); err != nil {
		return 0, nil, err
	}
	return r.Seq, body, nil
}

// CountMessages counts the messages in runs of seqs that all exist. Its cost
// follows the number of other events.
func (s *Store) CountMessages(ctx context.Context, tenant string, sid uuid.UUID, runs []events.Range) (int64, error) {
	var n int64
	for _, r := range runs {
		others, err := s.of(tenant).CountOthers(ctx, db.CountOthersParams{TenantID: tenant, SID: sid, First: r.From, Last: r.To})
		if err != nil {
			return 0, readErr("events", err)
		}
		n += r.To - r.From + 1 - others
	}
	return n, nil
}

// MessageHash is the identity of a stored message's content.
type MessageHash struct {
	Seq  int64
	Hash []byte
	// Lane is whose message it is.
	Lane Lane
}

// MessageHashes reads the payload hashes of messages after a seq, in order.
func (s *Store) MessageHashes(ctx context.Context, tenant string, sid uuid.UUID, after int64, limit int) ([]MessageHash, error) {
	rows, err := s.of(tenant).PathHashes(ctx, db.PathHashesParams{TenantID: tenant, SID: sid, After: after, MaxRows: int32(limit)})
	if err != nil {
		return nil, readErr("events", err)
	}
	out := make([]MessageHash, len(rows))
	open := s.opener(tenant, sid)
	for i, r := range rows {
		hash, err := open.hash(ctx, r.PayloadHash)
		if err != nil {
			return nil, err
		}
		out[i] = MessageHash{Seq: r.Seq, Hash: hash, Lane: Lane{r.Gateway, r.HostSessionID}}
	}
	return out, nil
}

// Parent is one step of the message tree.
type Parent struct {
	Seq, Parent, Offset, Tokens int64
}

// Parents reads the tree's steps, newest first, from upto down to after (exclusive).
func (s *Store) Parents(ctx context.Context, tenant string, sid uuid.UUID, upto, after int64, limit int) ([]Parent, error) {
	rows, err := s.of(tenant).ParentOf(ctx, db.ParentOfParams{TenantID: tenant, SID: sid, Upto: upto, After: after, MaxRows: int32(limit)})
	if err != nil {
		return nil, readErr("events", err)
	}
	out := make([]Parent, len(rows))
	for i, r := range rows {
		out[i] = Parent{Seq: r.Seq, Parent: r.ParentSeq, Offset: r.OffsetTokens, Tokens: int64(r.Tokens)}
	}
	return out, nil
}

// KnownKeys looks keys of one kind up and answers with the seqs they name. An
// unknown session knows none.
func (s *Store) KnownKeys(ctx context.Context, tenant, key string, kind KeyKind, keys [][]byte) (map[string]int64, error) {
	stored, plain := keys, map[string][]byte{}
	if s.cfg.Vault != nil {
		p, err := s.pinOf(ctx, tenant, key, "", false)
		if err != nil {
			return nil, err
		}
		if p.sealer != nil {
			stored = make([][]byte, len(keys))
			for i, k := range keys {
				stored[i] = sealKey(p.sealer, Key{Kind: kind, Value: k}).Value
				plain[string(stored[i])] = k
			}
		}
	}
	rows, err := s.of(tenant).KnownKeys(ctx, db.KnownKeysParams{TenantID: tenant, SessionKey: key, Kind: int16(kind), Keys: stored})
	if err != nil {
		return nil, readErr("keys", err)
	}
	out := make(map[string]int64, len(rows))
	for _, r := range rows {
		if k, ok := plain[string(r.Key)]; ok {
			r.Key = k
		}
		out[string(r.Key)] = r.Seq
	}
	return out, nil
}
