-- name: OweForgetting :execrows
-- All sessions that read some of their window from this one, through however
-- many forks, are to forget it. The caller holds its lock, so no fork is under way.
WITH RECURSIVE below (sid) AS (
    SELECT l.sid FROM lineage l
    WHERE l.tenant_id = @tenant_id AND l.parent_sid = @sid AND l.kind <> 2
    UNION
    SELECT l.sid FROM below b
    JOIN lineage l ON l.tenant_id = @tenant_id AND l.parent_sid = b.sid AND l.kind <> 2
)
INSERT INTO forgetting (tenant_id, sid, ancestor)
SELECT s.tenant_id, s.sid, @sid FROM below b
JOIN sessions s ON s.tenant_id = @tenant_id AND s.sid = b.sid
ON CONFLICT DO NOTHING;

-- name: HeirsToForget :many
-- A page of those that have yet to forget an ancestor; without a key where they
-- are gone themselves.
SELECT f.sid, coalesce(s.session_key, '')::text AS session_key
FROM forgetting f
LEFT JOIN sessions s ON s.tenant_id = f.tenant_id AND s.sid = f.sid
WHERE f.tenant_id = @tenant_id AND f.ancestor = @ancestor AND f.sid > @after::uuid
ORDER BY f.sid LIMIT @max_rows::integer;

-- name: AncestorsToForget :many
SELECT ancestor FROM forgetting WHERE tenant_id = @tenant_id AND sid = @sid ORDER BY ancestor;

-- name: Forgot :exec
DELETE FROM forgetting WHERE tenant_id = @tenant_id AND ancestor = @ancestor AND sid = ANY (@sids::uuid[]);

-- name: TryLockSessions :many
-- Those that nobody else holds: a batch never waits for one with the locks of
-- others in hand.
SELECT u.key::text AS session_key FROM unnest(@session_keys::text[]) AS u (key)
WHERE pg_try_advisory_xact_lock(session_lock_id(@tenant_id::text, u.key));

-- name: Heirs :many
-- Sessions as they are, with their recorded states if they are few; and whether
-- they made summaries, which may have to be blanked one by one.
SELECT sqlc.embed(s), n.states AS state_count, coalesce(r.as_of, '{}')::bigint[] AS as_of,
       coalesce(r.epochs, '{}')::bigint[] AS epochs, coalesce(r.states, '{}')::bytea[] AS states,
       EXISTS (SELECT FROM events e WHERE e.tenant_id = s.tenant_id AND e.sid = s.sid AND e.type = 8 AND e.type <> 1)::boolean AS summarized,
       (SELECT count(*) FROM forgetting f WHERE f.tenant_id = s.tenant_id AND f.sid = s.sid) AS owed
FROM sessions s
CROSS JOIN LATERAL (
    SELECT count(*) AS states FROM session_states x WHERE x.tenant_id = s.tenant_id AND x.sid = s.sid) n
LEFT JOIN LATERAL (
    SELECT array_agg(x.as_of ORDER BY x.as_of) AS as_of, array_agg(x.epoch ORDER BY x.as_of) AS epochs, array_agg(x.state ORDER BY x.as_of) AS states
    FROM session_states x
    WHERE x.tenant_id = s.tenant_id AND x.sid = s.sid AND n.states <= @few_states::bigint) r ON true
WHERE s.tenant_id = @tenant_id AND s.sid = ANY (@sids::uuid[]);

-- name: StepEpochs :one
-- What StepEpoch does, for several; how many it did it for.
SELECT count(*) FROM (
    SELECT unnest(@sids::uuid[]) AS sid, unnest(@epochs::bigint[]) AS epoch, unnest(@bases::bigint[]) AS base) u
WHERE step_epoch(@tenant_id::text, u.sid, u.epoch, u.base);

-- name: StayIdle :exec
-- To forget is no use of a session: retention goes by what was written before.
SELECT stay_idle(@tenant_id::text, u.sid, u.at)
FROM (SELECT unnest(@sids::uuid[]) AS sid, unnest(@ats::timestamptz[]) AS at) u;

-- name: ReplaceStates :exec
INSERT INTO session_states (tenant_id, sid, as_of, epoch, state)
SELECT @tenant_id, u.sid, u.as_of, u.epoch, u.state
FROM (SELECT unnest(@sids::uuid[]) AS sid, unnest(@as_of::bigint[]) AS as_of, unnest(@epochs::bigint[]) AS epoch, unnest(@states::bytea[]) AS state) u
ON CONFLICT (tenant_id, sid, as_of) DO UPDATE SET epoch = excluded.epoch, state = excluded.state;

-- name: PayDebts :exec
DELETE FROM compaction_debt WHERE tenant_id = @tenant_id AND sid = ANY (@sids::uuid[]);

-- name: DropDraftsOf :exec
DELETE FROM drafts WHERE tenant_id = @tenant_id AND sid = ANY (@sids::uuid[]);

-- name: ChildrenNaming :many
-- Sessions that still name an erased parent by its key.
SELECT l.sid
FROM tombstones t
JOIN lineage l ON l.tenant_id = t.tenant_id AND l.parent_sid = t.sid
WHERE t.tenant_id = @tenant_id AND t.sid = @parent_sid AND l.parent_key <> 'erased:' || encode(t.key_hash, 'hex')
ORDER BY l.sid LIMIT @max_rows::integer;

-- name: Disguise :one
-- What an erased session is called from then on.
SELECT ('erased:' || encode(key_hash, 'hex'))::text AS name FROM tombstones WHERE tenant_id = @tenant_id AND sid = @sid;

-- name: Beginnings :many
-- The events that name the parents of sessions: those that begin their logs.
SELECT e.sid, e.seq, e.type, coalesce(b.body, e.body)::bytea AS body
FROM unnest(@sids::uuid[]) AS u (sid)
CROSS JOIN LATERAL (
    SELECT x.sid, x.seq, x.type, x.body, x.body_ref FROM events x
    WHERE x.tenant_id = @tenant_id AND x.sid = u.sid AND x.seq <= 2 AND x.type = ANY (@types::smallint[])) e
LEFT JOIN LATERAL (
    SELECT x.body FROM bodies x WHERE x.tenant_id = @tenant_id AND x.sid = e.sid AND x.hash = e.body_ref LIMIT 1) b ON true;

-- name: RewriteEvents :exec
-- What RewriteEvent does, for several.
SELECT rewrite_event(@tenant_id::text, u.sid, u.seq, u.body)
FROM (SELECT unnest(@sids::uuid[]) AS sid, unnest(@seqs::bigint[]) AS seq, unnest(@bodies::bytea[]) AS body) u;

-- name: DisguiseParents :exec
UPDATE lineage SET parent_key = @disguise
WHERE tenant_id = @tenant_id AND parent_sid = @parent_sid AND sid = ANY (@sids::uuid[]);
