-- name: LaneView :one
-- A session, its newest epoch step and one of its lanes, in one round trip.
SELECT sqlc.embed(s), coalesce(st.as_of, 0)::bigint AS state_as_of, coalesce(st.state, ''::bytea)::bytea AS state,
       (l.sid IS NOT NULL)::boolean AS known, l.cursor,
       coalesce(l.revision, '')::text AS revision, coalesce(l.position, ''::bytea)::bytea AS position,
       EXISTS (SELECT FROM forgetting f WHERE f.tenant_id = s.tenant_id AND f.sid = s.sid)::boolean AS forgets
FROM sessions s
LEFT JOIN LATERAL (
    SELECT x.as_of, x.state FROM session_states x
    WHERE x.tenant_id = s.tenant_id AND x.sid = s.sid
    ORDER BY x.as_of DESC LIMIT 1
) st ON true
LEFT JOIN transcript_lanes l ON l.tenant_id = s.tenant_id AND l.sid = s.sid
    AND l.gateway = @gateway::text AND l.host_session_id = @host_session_id::text
WHERE s.tenant_id = @tenant_id AND s.session_key = @session_key;

-- name: LaneCursor :one
SELECT l.cursor, l.revision FROM sessions s
JOIN transcript_lanes l ON l.tenant_id = s.tenant_id AND l.sid = s.sid
    AND l.gateway = @gateway::text AND l.host_session_id = @host_session_id::text
WHERE s.tenant_id = @tenant_id AND s.session_key = @session_key;

-- name: SaveLane :exec
INSERT INTO transcript_lanes AS x (tenant_id, sid, gateway, host_session_id, cursor, revision, position)
VALUES (@tenant_id, @sid, @gateway, @host_session_id, @cursor, @revision, @position)
ON CONFLICT (tenant_id, sid, gateway, host_session_id) DO UPDATE
SET cursor = excluded.cursor, revision = excluded.revision, position = excluded.position, updated_at = now();

-- name: KeysBetween :many
-- Keys of one kind that lie in any of the ranges, and what kind of event has
-- each. A probe per range, as in Bodies.
SELECT k.key, k.seq, k.payload_hash, coalesce(e.type, 0)::smallint AS type,
       (CASE WHEN e.type = 2 THEN e.body ELSE ''::bytea END)::bytea AS body
FROM (SELECT unnest(@first::bytea[]) AS a, unnest(@past::bytea[]) AS z) u
CROSS JOIN LATERAL (
    SELECT x.key, x.seq, x.payload_hash FROM event_keys x
    WHERE x.tenant_id = @tenant_id AND x.sid = @sid AND x.kind = @kind AND x.key >= u.a AND x.key < u.z
    ORDER BY x.key LIMIT 1000) k
LEFT JOIN LATERAL (
    SELECT y.type, y.body FROM events y
    WHERE y.tenant_id = @tenant_id AND y.sid = @sid AND y.seq = k.seq LIMIT 1) e ON true;

-- name: PutKeys :exec
INSERT INTO event_keys (tenant_id, sid, kind, key, seq, payload_hash)
SELECT @tenant_id, @sid, u.kind, u.key, u.seq, u.hash
FROM (SELECT unnest(@kinds::smallint[]) AS kind, unnest(@keys::bytea[]) AS key,
             unnest(@seqs::bigint[]) AS seq, unnest(@hashes::bytea[]) AS hash) u
ON CONFLICT (tenant_id, sid, kind, key) DO NOTHING;

-- name: UnnamedMessages :many
-- Messages of a gateway, or of none, that no transcript has named yet, in log
-- order.
SELECT e.seq, e.payload_hash, coalesce(e.gateway, '') AS gateway, coalesce(e.host_session_id, '') AS host_session_id
FROM events e
LEFT JOIN LATERAL (
    SELECT true AS named FROM event_keys k
    WHERE k.tenant_id = e.tenant_id AND k.sid = e.sid AND k.kind = 2 AND k.seq = e.seq LIMIT 1) n ON true
WHERE e.tenant_id = @tenant_id AND e.sid = @sid AND e.type = 1 AND e.seq > @after::bigint AND n.named IS NULL
  AND coalesce(e.gateway, '') IN (@gateway::text, '')
ORDER BY e.seq LIMIT @max_rows::integer;

-- name: UnnamedResets :many
-- Resets that no transcript has shown yet.
SELECT e.seq, e.body, coalesce(e.gateway, '') AS gateway
FROM events e
LEFT JOIN LATERAL (
    SELECT true AS named FROM event_keys k
    WHERE k.tenant_id = e.tenant_id AND k.sid = e.sid AND k.kind = 2 AND k.seq = e.seq LIMIT 1) n ON true
WHERE e.tenant_id = @tenant_id AND e.sid = @sid AND e.type = 7 AND e.type <> 1 AND n.named IS NULL
ORDER BY e.seq;

-- name: MessageSteps :many
-- The facts of all messages up to a seq, for a walk over the whole tree.
SELECT seq, role, tokens, flags, links, offset_tokens, parent_seq FROM events
WHERE tenant_id = @tenant_id AND sid = @sid AND type = 1 AND seq <= @upto::bigint
ORDER BY seq;

-- name: Reparent :exec
-- Puts messages of the running transaction where the host's tree has them.
UPDATE events e SET parent_seq = u.parent, offset_tokens = u.total
FROM (SELECT unnest(@seqs::bigint[]) AS seq, unnest(@parents::bigint[]) AS parent, unnest(@totals::bigint[]) AS total) u
WHERE e.tenant_id = @tenant_id AND e.sid = @sid AND e.seq = u.seq
  -- Whatever the plan, no more of the session is read than lies between.
  AND e.seq >= (SELECT min(x) FROM unnest(@seqs::bigint[]) AS x) AND e.seq <= (SELECT max(x) FROM unnest(@seqs::bigint[]) AS x);

-- name: TurnsAfter :many
-- The committed turns after a seq, for what they say of their ends.
SELECT e.seq, coalesce(b.body, e.body)::bytea AS body FROM events e
LEFT JOIN LATERAL (
    SELECT x.body FROM bodies x WHERE x.tenant_id = e.tenant_id AND x.sid = e.sid AND x.hash = e.body_ref LIMIT 1) b ON true
WHERE e.tenant_id = @tenant_id AND e.sid = @sid AND e.type = 2 AND e.type <> 1 AND e.seq > @after::bigint
ORDER BY e.seq LIMIT @max_rows::integer;

-- name: MessagesFrom :many
-- Messages from a seq on, with whose they are.
SELECT e.seq, e.payload_hash, coalesce(e.gateway, '') AS gateway, coalesce(e.host_session_id, '') AS host_session_id
FROM events e
WHERE e.tenant_id = @tenant_id AND e.sid = @sid AND e.type = 1 AND e.seq >= @first::bigint
ORDER BY e.seq LIMIT @max_rows::integer;

-- name: EntryKeyOf :one
-- The key of a host entry that an event is.
SELECT k.key FROM event_keys k
WHERE k.tenant_id = @tenant_id AND k.sid = @sid AND k.kind = 2 AND k.seq = @seq
ORDER BY k.key LIMIT 1;
