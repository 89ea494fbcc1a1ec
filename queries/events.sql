-- name: FactsBefore :many
-- Facts of messages, newest first, without their bodies.
SELECT seq, role, tokens, flags, links, offset_tokens, parent_seq FROM events
WHERE tenant_id = @tenant_id AND sid = @sid AND type = 1
  AND seq <= @upto::bigint AND seq >= @since::bigint
ORDER BY seq DESC LIMIT @max_rows::integer;

-- name: Bodies :many
-- LATERAL … LIMIT 1 pins a probe per seq; for seq = ANY (…) the planner may read
-- the whole session and filter.
SELECT e.seq, e.recorded_at, coalesce(b.body, e.body)::bytea AS body
FROM unnest(@seqs::bigint[]) AS u (seq)
CROSS JOIN LATERAL (
    SELECT x.seq, x.recorded_at, x.body, x.body_ref FROM events x
    WHERE x.tenant_id = @tenant_id AND x.sid = @sid AND x.seq = u.seq LIMIT 1) e
LEFT JOIN LATERAL (
    SELECT x.body FROM bodies x WHERE x.tenant_id = @tenant_id AND x.sid = @sid AND x.hash = e.body_ref LIMIT 1) b ON true;

-- name: EventsAfter :many
-- The first row always, then more while those before it hold less than max_bytes.
-- Sizes are told without fetching the bytes.
SELECT p.seq, p.type, p.parent_seq, p.epoch, coalesce(p.gateway, '') AS gateway,
       coalesce(p.host_session_id, '') AS host_session_id, p.whole::bytea AS body,
       p.recorded_at, p.reader_version, p.role, p.tokens, p.flags, p.links, p.offset_tokens,
       -- A summary that may be of what an erased ancestor said, or its name.
       (p.type IN (8, 11, 12) AND EXISTS (SELECT FROM forgetting f WHERE f.tenant_id = p.tenant_id AND f.sid = p.sid))::boolean AS forgets
FROM (
    SELECT e.*, coalesce(b.body, e.body) AS whole,
           sum(coalesce(octet_length(b.body), octet_length(e.body), 0)::bigint) OVER (
               ORDER BY e.seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes_before
    FROM (
        SELECT * FROM events x
        WHERE x.tenant_id = @tenant_id AND x.sid = @sid AND x.seq > @after::bigint
          -- One that is being erased has no events any more, for its streams too.
          AND EXISTS (SELECT FROM sessions y WHERE y.tenant_id = @tenant_id AND y.sid = @sid)
        ORDER BY x.seq LIMIT @max_rows::integer) e
    LEFT JOIN LATERAL (
        SELECT x.body FROM bodies x
        WHERE x.tenant_id = e.tenant_id AND x.sid = e.sid AND x.hash = e.body_ref LIMIT 1) b ON true
) p
WHERE coalesce(p.bytes_before, 0) < @max_bytes::bigint
ORDER BY p.seq;

-- name: EventsOfType :many
SELECT e.seq, e.type, e.parent_seq, e.epoch, coalesce(e.gateway, '') AS gateway, coalesce(e.host_session_id, '') AS host_session_id,
       coalesce(b.body, e.body)::bytea AS body, e.recorded_at, e.tokens
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
SELECT seq, payload_hash, coalesce(gateway, '') AS gateway, coalesce(host_session_id, '') AS host_session_id FROM events
WHERE tenant_id = @tenant_id AND sid = @sid AND type = 1 AND seq > @after::bigint
ORDER BY seq LIMIT @max_rows::integer;

-- name: ParentOf :many
SELECT seq, parent_seq, offset_tokens, tokens FROM events
WHERE tenant_id = @tenant_id AND sid = @sid AND type = 1 AND seq <= @upto::bigint AND seq > @after::bigint
ORDER BY seq DESC LIMIT @max_rows::integer;

-- name: FeedAfter :many
-- The gap-safe order: only transactions that every reader already sees. Bytes
-- are bounded as in EventsAfter.
SELECT p.xid, p.position, s.session_key, s.sealed, p.sid, p.seq, p.type, p.parent_seq, p.epoch,
       coalesce(p.gateway, '') AS gateway, coalesce(p.host_session_id, '') AS host_session_id,
       p.whole::bytea AS body, p.recorded_at, p.role, p.tokens, p.flags,
       (p.type IN (8, 11, 12) AND EXISTS (SELECT FROM forgetting f WHERE f.tenant_id = p.tenant_id AND f.sid = p.sid))::boolean AS forgets
FROM (
    SELECT e.*, coalesce(b.body, e.body) AS whole,
           sum(coalesce(octet_length(b.body), octet_length(e.body), 0)::bigint) OVER (
               ORDER BY e.xid, e.position ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes_before
    FROM (
        SELECT * FROM events x
        WHERE x.tenant_id = @tenant_id
          AND (x.xid, x.position) > (@after_xid::xid8, @after_position::bigint)
          AND x.xid < pg_snapshot_xmin(pg_current_snapshot())
          AND EXISTS (SELECT FROM sessions y WHERE y.tenant_id = x.tenant_id AND y.sid = x.sid)
        ORDER BY x.xid, x.position LIMIT @max_rows::integer) e
    LEFT JOIN LATERAL (
        SELECT x.body FROM bodies x
        WHERE x.tenant_id = e.tenant_id AND x.sid = e.sid AND x.hash = e.body_ref LIMIT 1) b ON true
) p
JOIN sessions s ON s.tenant_id = p.tenant_id AND s.sid = p.sid
WHERE coalesce(p.bytes_before, 0) < @max_bytes::bigint
ORDER BY p.xid, p.position;

-- name: FeedBack :many
-- The places of a tenant's newest events, in the same order backwards.
SELECT x.xid, x.position FROM events x
WHERE x.tenant_id = @tenant_id
  AND x.xid < pg_snapshot_xmin(pg_current_snapshot())
  AND EXISTS (SELECT FROM sessions y WHERE y.tenant_id = x.tenant_id AND y.sid = x.sid)
ORDER BY x.xid DESC, x.position DESC LIMIT @max_rows::integer;

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

-- name: NewestCaller :one
-- The newest assistant message before a seq whose links hold an id. An id may
-- be part of a longer one, so the caller looks again at what it gets.
SELECT seq, role, tokens, flags, links, offset_tokens FROM events
WHERE tenant_id = @tenant_id AND sid = @sid AND type = 1 AND role = 2 AND seq < @before::bigint
  AND links IS NOT NULL AND position(@call_id::bytea IN links) > 0
ORDER BY seq DESC LIMIT 1;
