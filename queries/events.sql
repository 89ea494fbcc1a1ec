-- name: FactsBefore :many
-- Facts of messages, newest first, without their bodies.
SELECT seq, role, tokens, flags, links, offset_tokens, parent_seq FROM events
WHERE tenant_id = @tenant_id AND sid = @sid AND type = 1
  AND seq <= @upto::bigint AND seq >= @since::bigint
ORDER BY seq DESC LIMIT @max_rows::integer;

-- name: Bodies :many
-- LATERAL … LIMIT 1 pins a probe per seq; for seq = ANY (…) the planner may read
-- the whole session and filter.
SELECT e.seq, coalesce(b.body, e.body)::bytea AS body
FROM unnest(@seqs::bigint[]) AS u (seq)
CROSS JOIN LATERAL (
    SELECT x.seq, x.body, x.body_ref FROM events x
    WHERE x.tenant_id = @tenant_id AND x.sid = @sid AND x.seq = u.seq LIMIT 1) e
LEFT JOIN LATERAL (
    SELECT x.body FROM bodies x WHERE x.tenant_id = @tenant_id AND x.sid = @sid AND x.hash = e.body_ref LIMIT 1) b ON true;

-- name: EventsAfter :many
SELECT e.seq, e.type, e.parent_seq, e.epoch, coalesce(e.gateway, '') AS gateway,
       coalesce(e.host_session_id, '') AS host_session_id, coalesce(b.body, e.body)::bytea AS body,
       e.recorded_at, e.reader_version, e.role, e.tokens, e.flags, e.links, e.offset_tokens
FROM events e
LEFT JOIN bodies b ON b.tenant_id = e.tenant_id AND b.sid = e.sid AND b.hash = e.body_ref
WHERE e.tenant_id = @tenant_id AND e.sid = @sid AND e.seq > @after::bigint
ORDER BY e.seq LIMIT @max_rows::integer;

-- name: EventsOfType :many
SELECT e.seq, e.type, e.parent_seq, e.epoch, coalesce(b.body, e.body)::bytea AS body, e.recorded_at, e.tokens
FROM events e
LEFT JOIN bodies b ON b.tenant_id = e.tenant_id AND b.sid = e.sid AND b.hash = e.body_ref
WHERE e.tenant_id = @tenant_id AND e.sid = @sid AND e.type = @type AND e.type <> 1
  AND e.seq > @after::bigint AND e.seq <= @upto::bigint
ORDER BY e.seq LIMIT @max_rows::integer;

-- name: NewestOfType :one
SELECT e.seq, e.body FROM events e
WHERE e.tenant_id = @tenant_id AND e.sid = @sid AND e.type = @type AND e.type <> 1 AND e.seq <= @upto::bigint
ORDER BY e.seq DESC LIMIT 1;

-- name: CountOthers :one
-- How many events of a run of seqs are no messages. There are few of them, and
-- seqs have no gaps, so the messages need not be looked at to be counted.
SELECT count(*) FROM events
WHERE tenant_id = @tenant_id AND sid = @sid AND type <> 1
  AND seq >= @first::bigint AND seq <= @last::bigint;

-- name: PathHashes :many
SELECT seq, payload_hash FROM events
WHERE tenant_id = @tenant_id AND sid = @sid AND type = 1 AND seq > @after::bigint
ORDER BY seq LIMIT @max_rows::integer;

-- name: ParentOf :many
SELECT seq, parent_seq, offset_tokens, tokens FROM events
WHERE tenant_id = @tenant_id AND sid = @sid AND type = 1 AND seq <= @upto::bigint AND seq > @after::bigint
ORDER BY seq DESC LIMIT @max_rows::integer;

-- name: FeedAfter :many
-- The gap-safe order: only transactions that every reader already sees.
SELECT e.xid, e.position, s.session_key, e.sid, e.seq, e.type, e.parent_seq, e.epoch,
       coalesce(e.gateway, '') AS gateway, coalesce(e.host_session_id, '') AS host_session_id,
       coalesce(b.body, e.body)::bytea AS body, e.recorded_at, e.role, e.tokens, e.flags
FROM events e
JOIN sessions s ON s.tenant_id = e.tenant_id AND s.sid = e.sid
LEFT JOIN bodies b ON b.tenant_id = e.tenant_id AND b.sid = e.sid AND b.hash = e.body_ref
WHERE e.tenant_id = @tenant_id
  AND (e.xid, e.position) > (@after_xid::xid8, @after_position::bigint)
  AND e.xid < pg_snapshot_xmin(pg_current_snapshot())
ORDER BY e.xid, e.position LIMIT @max_rows::integer;

-- name: NoticesAfter :many
-- Turn and epoch events of all tenants, ids only, for the relay.
SELECT e.xid, e.position, e.tenant_id, e.sid, e.seq, e.type, e.epoch FROM events e
WHERE e.type IN (3, 6, 7, 9)
  AND (e.xid, e.position) > (@after_xid::xid8, @after_position::bigint)
  AND e.xid < pg_snapshot_xmin(pg_current_snapshot())
ORDER BY e.xid, e.position LIMIT @max_rows::integer;

-- name: Checkpoint :one
SELECT xid, position FROM checkpoints WHERE name = @name;

-- name: SaveCheckpoint :exec
INSERT INTO checkpoints (name, xid, position) VALUES (@name, @xid, @position)
ON CONFLICT (name) DO UPDATE SET xid = excluded.xid, position = excluded.position, updated_at = now()
WHERE (checkpoints.xid, checkpoints.position) < (excluded.xid, excluded.position);
