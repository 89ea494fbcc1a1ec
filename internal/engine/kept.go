package engine

import (
	"context"
	"strconv"

	"github.com/google/uuid"

	"github.com/engined/engined/internal/store"
)

// entryID is what a host knows the message at a place by: its entry id where a
// transcript brought it, else its seq. A compaction that is done does not fail
// for want of a name.
func entryID(ctx context.Context, log Log, v store.View, place int64) string {
	seg, seq, own := v.State.Line.Locate(place)
	sid := v.SID
	if !own {
		sid = uuid.UUID(seg.SID)
	}
	id, err := log.EntryID(ctx, v.Tenant, sid, seq)
	if err != nil || id == "" {
		return strconv.FormatInt(seq, 10)
	}
	return id
}
