-- name: LockLine :exec
-- Locks a new child's key for itself and its ancestors' against writers, in the
-- order of all who lock several sessions.
SELECT CASE WHEN u.own THEN pg_advisory_xact_lock(u.id) ELSE pg_advisory_xact_lock_shared(u.id) END
FROM (
    SELECT x.id, bool_or(x.own) AS own
    FROM (SELECT session_lock_id(@tenant_id::text, @child_key::text) AS id, true AS own
          UNION ALL
          SELECT session_lock_id(@tenant_id::text, k), false FROM unnest(@ancestor_keys::text[]) AS k) x
    GROUP BY x.id ORDER BY x.id) u;

-- name: CountLives :one
-- How many of the sessions live, and whether any of them is encrypted.
SELECT count(*) AS lives, coalesce(bool_or(s.sealed), false)::boolean AS sealed
FROM unnest(@sids::uuid[]) AS u (sid)
CROSS JOIN LATERAL (SELECT x.sealed FROM sessions x WHERE x.tenant_id = @tenant_id AND x.sid = u.sid LIMIT 1) s;

-- name: SeedChild :exec
-- What a session starts with that inherited.
UPDATE sessions
SET leaf_seq = 1, leaf_offset = @leaf_offset, base_offset = @base_offset, hold_offset = @hold_offset,
    factor_milli = @factor_milli, token_budget = @token_budget, dialect = @dialect
WHERE tenant_id = @tenant_id AND sid = @sid;

-- name: AddLineage :exec
INSERT INTO lineage (tenant_id, sid, parent_sid, parent_key, kind, at_seq, preparation_id, expires_at)
VALUES (@tenant_id, @sid, @parent_sid, @parent_key, @kind, @at_seq, nullif(@preparation_id::text, ''),
        CASE WHEN @ttl_seconds::double precision > 0 THEN now() + make_interval(secs => @ttl_seconds::double precision) END);

-- name: LineageOf :one
SELECT * FROM lineage WHERE tenant_id = @tenant_id AND sid = @sid;

-- name: LineageByKey :one
SELECT sqlc.embed(s), sqlc.embed(l),
       EXISTS (SELECT FROM forgetting f WHERE f.tenant_id = s.tenant_id AND f.sid = s.sid)::boolean AS forgets
FROM sessions s
JOIN lineage l ON l.tenant_id = s.tenant_id AND l.sid = s.sid
WHERE s.tenant_id = @tenant_id AND s.session_key = @session_key;

-- name: ChildrenOf :many
-- The newest first: a sid begins with its time.
SELECT sqlc.embed(l), s.session_key FROM lineage l
JOIN sessions s ON s.tenant_id = l.tenant_id AND s.sid = l.sid
WHERE l.tenant_id = @tenant_id AND l.parent_sid = @parent_sid
ORDER BY l.sid DESC LIMIT @max_rows::integer;

-- name: HasChildren :one
SELECT EXISTS (SELECT FROM lineage WHERE tenant_id = @tenant_id AND parent_sid = @sid)::boolean AS has;

-- name: InheritorsOf :many
-- All sessions that read some of their window from this one, through however
-- many forks, parents before children. An isolated sub-agent inherits nothing,
-- and nothing through it.
WITH RECURSIVE below (sid, depth) AS (
    SELECT l.sid, 1 FROM lineage l
    WHERE l.tenant_id = @tenant_id AND l.parent_sid = @sid AND l.kind <> 2
    UNION ALL
    SELECT l.sid, b.depth + 1 FROM below b
    JOIN lineage l ON l.tenant_id = @tenant_id AND l.parent_sid = b.sid AND l.kind <> 2
)
SELECT b.sid, s.session_key, b.depth::integer AS depth FROM below b
JOIN sessions s ON s.tenant_id = @tenant_id AND s.sid = b.sid
ORDER BY b.depth, b.sid;

-- name: EndLineage :exec
UPDATE lineage SET end_reason = @end_reason, ended_at = now() WHERE tenant_id = @tenant_id AND sid = @sid;

-- name: ExpiredChildren :many
SELECT l.tenant_id, l.sid, s.session_key FROM lineage l
JOIN sessions s ON s.tenant_id = l.tenant_id AND s.sid = l.sid
WHERE l.expires_at <= now()
ORDER BY l.expires_at LIMIT @max_rows::integer;

-- name: KeepChild :exec
-- A child that has begun is kept for good.
UPDATE lineage SET expires_at = NULL WHERE tenant_id = @tenant_id AND sid = @sid;

-- name: ForgetSession :exec
SELECT forget_session(@tenant_id::text, @sid::uuid);

-- name: StatesOf :many
SELECT as_of, state FROM session_states WHERE tenant_id = @tenant_id AND sid = @sid ORDER BY as_of;

-- name: RewriteState :exec
UPDATE session_states SET state = @state WHERE tenant_id = @tenant_id AND sid = @sid AND as_of = @as_of;

-- name: RewriteEvent :exec
-- Only an erasure rewrites an event: the body of one that the engine wrote.
UPDATE events SET body = @body, body_ref = NULL
WHERE tenant_id = @tenant_id AND sid = @sid AND seq = @seq AND type <> 1;

-- name: DropUnusedBodies :exec
DELETE FROM bodies b
WHERE b.tenant_id = @tenant_id AND b.sid = @sid
  AND NOT EXISTS (SELECT FROM events e WHERE e.tenant_id = b.tenant_id AND e.sid = b.sid AND e.body_ref = b.hash);
