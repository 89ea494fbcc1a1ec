package main

import (
	"context"
	"fmt"
)

// verify holds the log against what was acknowledged: every session's seqs run
// from 1 to its head, and each side has as many events, each with its key, as
// calls were answered.
func (b *bench) verify(ctx context.Context) (string, error) {
	var total int64
	for _, side := range []string{sideHTTP, sidePgbench} {
		var sessions, broken, stored, keys int64
		err := b.db.QueryRow(ctx, `
			WITH ours AS (SELECT sid, head FROM sessions WHERE tenant_id = $1 AND starts_with(session_key, $2)),
			logs AS (
				SELECT o.sid, o.head, count(*) AS n, min(e.seq) AS lo, max(e.seq) AS hi
				FROM ours o JOIN events e ON e.tenant_id = $1 AND e.sid = o.sid GROUP BY o.sid, o.head)
			SELECT (SELECT count(*) FROM ours), count(*) FILTER (WHERE n <> head OR lo <> 1 OR hi <> head), coalesce(sum(n), 0)::bigint,
			       (SELECT count(DISTINCT (k.sid, k.seq)) FROM event_keys k JOIN ours o ON k.tenant_id = $1 AND k.sid = o.sid)
			FROM logs`, tenant, "bench-"+side+"-").Scan(&sessions, &broken, &stored, &keys)
		if err != nil {
			return "", err
		}
		want := int64(0)
		for _, n := range b.spreads() {
			want += int64(n)
		}
		if sessions != want || broken != 0 || stored != b.acked[side] || keys != stored {
			return "", fmt.Errorf("%s: %d of %d sessions, %d of them with gaps; %d calls acknowledged, %d events and %d keys stored",
				side, sessions, want, broken, b.acked[side], stored, keys)
		}
		total += stored
	}
	return fmt.Sprintf("%d appends acknowledged, %d events stored, no gaps", total, total), nil
}
