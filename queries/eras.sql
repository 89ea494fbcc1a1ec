-- name: FeedEra :one
-- The newest era, and the cluster that this is.
SELECT f.era, f.cluster, f.opened_at, cluster_identity()::text AS here
FROM feed_eras f ORDER BY f.era DESC LIMIT 1;

-- name: LockEras :exec
-- One at a time opens an era.
SELECT pg_advisory_xact_lock(7420, 10);

-- name: LockEvents :exec
-- Waits for every writer and holds the next ones off.
LOCK TABLE events IN SHARE MODE;

-- name: NewestPosition :one
-- By the sequence: no position above it has been given out.
SELECT coalesce(pg_sequence_last_value(pg_get_serial_sequence('events', 'position')::regclass), 0)::bigint AS position;

-- name: AgeEvents :execrows
-- Events of a session from before an era get an id that is older than any other.
-- Their order is that of their positions.
UPDATE events SET xid = '3'::xid8
WHERE tenant_id = @tenant_id AND sid = @sid AND seq > @after::bigint AND seq <= @upto::bigint
  AND position <= @newest::bigint AND xid <> '3'::xid8;

-- name: OpenEra :one
INSERT INTO feed_eras (era, cluster, position)
SELECT coalesce(max(f.era), 0) + 1, cluster_identity(), @position::bigint FROM feed_eras f
RETURNING era;

-- name: ForgetCheckpoints :exec
-- Places in the order of an era that is over.
DELETE FROM checkpoints;

-- name: RecountBytes :exec
WITH counted AS (DELETE FROM session_bytes)
UPDATE tenant_bytes SET xid = '0'::xid8, position = 0, bytes = 0;

-- name: RestartSearch :exec
-- What is indexed stays findable; reading on from the beginning finds it known.
UPDATE search_cursors SET xid = '0'::xid8, position = @position, claimed_until = '-infinity';

-- name: ResumSearch :exec
UPDATE search_sessions SET seq = 0, parts = 0, length = 0;
