-- name: SessionByKey :one
-- forgets: it has yet to forget an erased ancestor, before anybody reads on.
SELECT sqlc.embed(s), EXISTS (SELECT FROM forgetting f WHERE f.tenant_id = s.tenant_id AND f.sid = s.sid)::boolean AS forgets
FROM sessions s WHERE s.tenant_id = @tenant_id AND s.session_key = @session_key;

-- name: SessionBySID :one
SELECT sqlc.embed(s), EXISTS (SELECT FROM forgetting f WHERE f.tenant_id = s.tenant_id AND f.sid = s.sid)::boolean AS forgets
FROM sessions s WHERE s.tenant_id = @tenant_id AND s.sid = @sid;

-- name: ListSessions :many
SELECT s.*, d.tokens AS debt_tokens FROM sessions s
LEFT JOIN compaction_debt d ON d.tenant_id = s.tenant_id AND d.sid = s.sid
WHERE s.tenant_id = @tenant_id AND s.session_key > @after::text
  AND (@holding::text = '' OR strpos(lower(s.session_key), lower(@holding::text)) > 0)
ORDER BY s.session_key
LIMIT @max_rows::integer;

-- name: StateAsOf :one
-- The newest epoch step at or before a seq.
SELECT as_of, epoch, state FROM session_states
WHERE tenant_id = @tenant_id AND sid = @sid AND as_of <= @as_of::bigint
ORDER BY as_of DESC LIMIT 1;

-- name: SessionWithState :one
-- A session and its newest epoch step, in one round trip.
SELECT sqlc.embed(s), coalesce(st.as_of, 0)::bigint AS state_as_of, coalesce(st.state, ''::bytea)::bytea AS state,
       EXISTS (SELECT FROM forgetting f WHERE f.tenant_id = s.tenant_id AND f.sid = s.sid)::boolean AS forgets
FROM sessions s
LEFT JOIN LATERAL (
    SELECT x.as_of, x.state FROM session_states x
    WHERE x.tenant_id = s.tenant_id AND x.sid = s.sid
    ORDER BY x.as_of DESC LIMIT 1
) st ON true
WHERE s.tenant_id = @tenant_id AND s.session_key = @session_key;

-- name: DialectAsOf :one
-- A session has the dialect of its first message that tells. Bits 24 and 25 of
-- flags are a message's.
SELECT coalesce((
    SELECT e.flags >> 24 & 3 FROM events e
    WHERE e.tenant_id = @tenant_id AND e.sid = @sid AND e.type = 1 AND e.seq <= @as_of::bigint AND e.flags >> 24 & 3 <> 0
    ORDER BY e.seq LIMIT 1
), 0)::smallint AS dialect;

-- name: StateOfEpoch :one
SELECT state FROM session_states
WHERE tenant_id = @tenant_id AND sid = @sid AND epoch = @epoch
ORDER BY as_of LIMIT 1;

-- name: PutState :exec
INSERT INTO session_states (tenant_id, sid, as_of, epoch, state)
VALUES (@tenant_id, @sid, @as_of, @epoch, @state);

-- name: StepEpoch :one
-- The compare-and-swap of every epoch step. The caller holds the session lock.
UPDATE sessions
SET epoch = epoch + 1, base_offset = @base_offset, hold_offset = @hold_offset,
    factor_milli = @factor_milli, leaf_seq = @leaf_seq, leaf_offset = @leaf_offset, updated_at = now()
WHERE tenant_id = @tenant_id AND sid = @sid AND epoch = @epoch
RETURNING epoch;

-- name: CountCompactions :one
-- Epochs that a compaction began since the newest reset. The bytes looked for
-- are as this service writes them, and can't be inside another of their strings.
SELECT count(*) FROM events e
LEFT JOIN bodies b ON b.tenant_id = e.tenant_id AND b.sid = e.sid AND b.hash = e.body_ref
WHERE e.tenant_id = @tenant_id AND e.sid = @sid AND e.type = 9
  AND position(convert_to('"cause":"compaction"', 'UTF8') IN coalesce(b.body, e.body)) > 0
  AND e.seq > coalesce((
    SELECT max(r.seq) FROM events r WHERE r.tenant_id = @tenant_id AND r.sid = @sid AND r.type = 7), 0);

-- name: SessionView :one
-- Everything an assemble needs in one round trip: the session, its newest
-- epoch step, and the messages a node has not cached yet, with their bodies. The
-- order is said in each aggregate: a join below it may lose that of its input.
SELECT sqlc.embed(s), coalesce(st.as_of, 0)::bigint AS state_as_of, coalesce(st.state, ''::bytea)::bytea AS state,
       coalesce(n.seqs, '{}')::bigint[] AS seqs, coalesce(n.roles, '{}')::smallint[] AS roles,
       coalesce(n.tokens, '{}')::integer[] AS tokens, coalesce(n.flags, '{}')::integer[] AS flags,
       coalesce(n.links, '{}')::bytea[] AS links, coalesce(n.offsets, '{}')::bigint[] AS offsets,
       coalesce(n.bodies, '{}')::bytea[] AS bodies,
       EXISTS (SELECT FROM forgetting f WHERE f.tenant_id = s.tenant_id AND f.sid = s.sid)::boolean AS forgets
FROM sessions s
LEFT JOIN LATERAL (
    SELECT x.as_of, x.state FROM session_states x
    WHERE x.tenant_id = s.tenant_id AND x.sid = s.sid
    ORDER BY x.as_of DESC LIMIT 1
) st ON true
LEFT JOIN LATERAL (
    SELECT array_agg(e.seq ORDER BY e.seq) AS seqs, array_agg(e.role ORDER BY e.seq) AS roles, array_agg(e.tokens ORDER BY e.seq) AS tokens,
           array_agg(e.flags ORDER BY e.seq) AS flags, array_agg(e.links ORDER BY e.seq) AS links, array_agg(e.offset_tokens ORDER BY e.seq) AS offsets,
           array_agg(coalesce(b.body, e.body) ORDER BY e.seq) AS bodies
    FROM (SELECT * FROM events x
          WHERE x.tenant_id = s.tenant_id AND x.sid = s.sid AND x.type = 1 AND s.sid = @cached_sid::uuid
            AND x.seq > @cached_head::bigint
          ORDER BY x.seq LIMIT @max_rows::integer) e
    LEFT JOIN LATERAL (
        SELECT y.body FROM bodies y
        WHERE y.tenant_id = e.tenant_id AND y.sid = e.sid AND y.hash = e.body_ref LIMIT 1) b ON true
) n ON true
WHERE s.tenant_id = @tenant_id AND s.session_key = @session_key;
