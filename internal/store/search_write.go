package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/google/uuid"

	"github.com/engined/engined/internal/search"
	"github.com/engined/engined/internal/store/db"
)

// ErrSearchMoved: another one has indexed the same events.
var ErrSearchMoved = errors.New("search: the index has moved on")

// SearchBehind lists tenants whose log is ahead of their index and that nobody
// works on, the longest waiting first.
func (s *Store) SearchBehind(ctx context.Context, limit int) ([]string, error) {
	if _, err := s.era(ctx); errors.Is(err, ErrFeedClosed) {
		return nil, nil
	}
	out, err := s.everyone.SearchBehind(ctx, db.SearchBehindParams{MaxRows: int32(limit)})
	if err != nil {
		return nil, readErr("search", err)
	}
	return out, nil
}

// lagCounted bounds how many events of a tenant SearchLag counts.
const lagCounted = 10_000

// SearchLag counts the events of all tenants that are not indexed yet, of each
// tenant up to 10,000, and tells for how long the oldest waits.
func (s *Store) SearchLag(ctx context.Context) (events int64, oldest time.Duration, err error) {
	r, err := s.everyone.SearchLag(ctx, db.SearchLagParams{Most: lagCounted})
	if err != nil {
		return 0, 0, readErr("search", err)
	}
	return r.Events, max(0, time.Duration(r.Seconds*float64(time.Second))), nil
}

// SearchClaim takes a tenant's index for a while and tells how far it is; ok
// is false when another one has it. The claim saves work twice done; what is
// right does not depend on it.
func (s *Store) SearchClaim(ctx context.Context, tenant string, lease time.Duration) (at Cursor, ok bool, err error) {
	if _, err := s.era(ctx); errors.Is(err, ErrFeedClosed) {
		return Cursor{}, false, nil // there is nothing that could be read
	}
	rows, err := s.of(tenant).SearchClaim(ctx, db.SearchClaimParams{TenantID: tenant, Seconds: lease.Seconds()})
	if err != nil || len(rows) == 0 {
		return Cursor{}, false, errUnavailable(err)
	}
	return Cursor{XID: rows[0].Xid.Uint64, Position: rows[0].Position}, true, nil
}

// SearchRelease gives a claim back.
func (s *Store) SearchRelease(ctx context.Context, tenant string) error {
	return errUnavailable(s.of(tenant).SearchRelease(ctx, db.SearchReleaseParams{TenantID: tenant}))
}

// SearchBatch is what a run of the feed adds to the index.
type SearchBatch struct {
	From, To Cursor
	// Heads is the newest indexed seq of every session in the run.
	Heads map[uuid.UUID]int64
	Parts []SearchPart
	// Summaries are the bodies that the parts of summaries were made from. An
	// erasure may blank one meanwhile; its parts are left out then.
	Summaries []SearchSource
}

// SearchSource is an event and the bytes it had when it was read.
type SearchSource struct {
	SID  uuid.UUID
	Seq  int64
	Body []byte
}

// SearchWrite adds a batch and moves the cursor, in one transaction. Sessions
// that were erased meanwhile are left out.
func (s *Store) SearchWrite(ctx context.Context, tenant string, b SearchBatch, lease time.Duration) error {
	write, sums := partsOf(tenant, b)
	err := s.within(ctx, tenant, func(q *db.Queries) error {
		// The cursor's row first: it is what two writers meet at.
		n, err := q.SearchAdvance(ctx, db.SearchAdvanceParams{
			TenantID: tenant, Xid: xid(b.To.XID), Position: b.To.Position, Seconds: lease.Seconds(),
			FromXid: xid(b.From.XID), FromPosition: b.From.Position,
		})
		if err != nil {
			return err
		}
		if n == 0 {
			return ErrSearchMoved
		}
		held, err := q.SearchHoldSessions(ctx, db.SearchHoldSessionsParams{TenantID: tenant, Sids: sums.Sids})
		if err != nil || len(held) == 0 {
			return err
		}
		if err := s.dropBlanked(ctx, q, tenant, b.Summaries, &write); err != nil {
			return err
		}
		write.Held, sums.Held = held, held
		if len(write.Sids) > 0 {
			if err := q.SearchWriteParts(ctx, write); err != nil {
				return err
			}
		}
		return q.SearchWriteSessions(ctx, sums)
	})
	if err != nil {
		return fmt.Errorf("search: %w", errUnavailable(err))
	}
	return nil
}

// dropBlanked takes out what was made from a summary that is another one now.
func (s *Store) dropBlanked(ctx context.Context, q *db.Queries, tenant string, sources []SearchSource, w *db.SearchWritePartsParams) error {
	if len(sources) == 0 {
		return nil
	}
	type place struct {
		sid uuid.UUID
		seq int64
	}
	was := make(map[place][]byte, len(sources))
	p := db.SearchHoldSummariesParams{TenantID: tenant}
	for _, src := range sources {
		was[place{src.SID, src.Seq}] = src.Body
		p.Sids, p.Seqs = append(p.Sids, src.SID), append(p.Seqs, src.Seq)
	}
	rows, err := q.SearchHoldSummaries(ctx, p)
	if err != nil {
		return err
	}
	for _, r := range rows {
		if bytes.Equal(r.Body, was[place{r.SID, r.Seq}]) {
			delete(was, place{r.SID, r.Seq})
		}
	}
	for i := range w.Sids {
		if _, gone := was[place{w.Sids[i], w.Seqs[i]}]; gone {
			w.Bodies[i], w.Terms[i] = "", ""
		}
	}
	return nil
}

func partsOf(tenant string, b SearchBatch) (db.SearchWritePartsParams, db.SearchWriteSessionsParams) {
	w := db.SearchWritePartsParams{TenantID: tenant}
	mark := tenantMark(tenant)
	type sum struct{ parts, length int64 }
	sums := map[uuid.UUID]sum{}
	for i := range b.Parts {
		p := &b.Parts[i]
		terms, length := search.Terms(p.Text)
		if p.Speaker != "" {
			more, _ := search.Terms(p.Speaker)
			terms = append(terms, more...)
		}
		extra := []string{sessionTerm(mark, p.SID)}
		if p.Part > 0 || i+1 < len(b.Parts) && b.Parts[i+1].SID == p.SID && b.Parts[i+1].Seq == p.Seq {
			extra = append(extra, mark+markParts)
		}
		w.Sids = append(w.Sids, p.SID)
		w.Seqs = append(w.Seqs, p.Seq)
		w.Parts = append(w.Parts, p.Part)
		w.Kinds = append(w.Kinds, int16(p.Kind))
		w.Roles = append(w.Roles, int16(p.Role))
		w.Flags = append(w.Flags, int32(p.Flags))
		w.Epochs = append(w.Epochs, p.Epoch)
		w.Tokens = append(w.Tokens, int32(min(p.Tokens, math.MaxInt32)))
		w.Lengths = append(w.Lengths, int32(length))
		w.Tools = append(w.Tools, p.Tool)
		w.Speakers = append(w.Speakers, p.Speaker)
		w.Ats = append(w.Ats, p.At)
		w.Terms = append(w.Terms, vectorOf(mark, terms, extra...))
		w.Bodies = append(w.Bodies, p.Text)
		n := sums[p.SID]
		sums[p.SID] = sum{n.parts + 1, n.length + int64(length)}
	}
	heads := db.SearchWriteSessionsParams{TenantID: tenant}
	for sid, seq := range b.Heads {
		heads.Sids = append(heads.Sids, sid)
		heads.Seqs = append(heads.Seqs, seq)
		heads.Parts = append(heads.Parts, sums[sid].parts)
		heads.Lengths = append(heads.Lengths, sums[sid].length)
	}
	return w, heads
}

// SearchForget drops a tenant's index; it is built again from the log.
func (s *Store) SearchForget(ctx context.Context, tenant string) (parts int64, err error) {
	err = s.within(ctx, tenant, func(q *db.Queries) error {
		// First, so that a writer's compare and swap waits and then fails.
		if err := q.SearchRewind(ctx, db.SearchRewindParams{TenantID: tenant}); err != nil {
			return err
		}
		if parts, err = q.SearchForgetParts(ctx, db.SearchForgetPartsParams{TenantID: tenant}); err != nil {
			return err
		}
		return q.SearchForgetSessions(ctx, db.SearchForgetSessionsParams{TenantID: tenant})
	})
	if err != nil {
		return 0, fmt.Errorf("search: %w", errUnavailable(err))
	}
	return parts, nil
}

// SearchTenants lists the tenants that have an index.
func (s *Store) SearchTenants(ctx context.Context) ([]string, error) {
	out, err := s.everyone.SearchTenants(ctx)
	if err != nil {
		return nil, readErr("search", err)
	}
	return out, nil
}
