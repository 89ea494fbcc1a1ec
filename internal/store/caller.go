package store

import (
	"context"
	"errors"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/engined/engined/internal/store/db"
	"github.com/engined/engined/internal/window"
)

// Caller finds the newest message before a seq that makes the call with an id;
// the zero entry when there is none. It walks the log backwards: its cost is
// the distance.
func (s *Store) Caller(ctx context.Context, tenant string, sid uuid.UUID, callID string, before int64) (window.Entry, error) {
	for {
		r, err := s.of(tenant).NewestCaller(ctx, db.NewestCallerParams{
			TenantID: tenant, SID: sid, Before: before, CallID: []byte(callID),
		})
		if errors.Is(err, pgx.ErrNoRows) {
			return window.Entry{}, nil
		}
		if err != nil {
			return window.Entry{}, readErr("caller", err)
		}
		e, err := entryOf(r.Seq, r.Role, r.Tokens, r.Flags, r.Links, r.OffsetTokens)
		if err != nil {
			return window.Entry{}, err
		}
		if slices.Contains(e.Calls, callID) {
			return e, nil
		}
		before = e.Seq
	}
}
