-- name: SessionErased :one
SELECT session_erased(@tenant_id::text, @session_key::text, @host_session::text)::boolean;

-- name: KnownHostSessions :many
SELECT DISTINCT x::text AS host_session_id FROM known_host_sessions(@tenant_id::text, @sid::uuid) AS x;

-- name: Bury :one
-- The sweep comes in a while, should the one who buries not get to the end.
INSERT INTO tombstones (tenant_id, key_hash, sid, host_sessions, counts, sweep_at, sealed)
VALUES (@tenant_id, session_grave(@tenant_id, @session_key::text), @sid, @host_sessions::bytea[], '{"sessions": 1}', now() + interval '1 minute', @sealed)
RETURNING erased_at;

-- name: DeleteSession :exec
DELETE FROM sessions WHERE tenant_id = @tenant_id AND sid = @sid;

-- name: SessionTables :many
SELECT x::text AS name FROM session_tables() AS x;

-- name: EraseRows :one
SELECT erase_rows(@tenant_id::text, @sid::uuid, @table_name::text, @max_rows::integer)::bigint;

-- name: DisguiseKey :exec
SELECT disguise_key(@tenant_id::text, @sid::uuid);

-- name: Emptied :one
-- The first time nothing was left, the sweep is asked to look once more, later:
-- for a row that a transaction of the past may still bring.
UPDATE tombstones
SET sweep_at = CASE WHEN emptied_at IS NULL THEN now() + interval '10 minutes' END, emptied_at = coalesce(emptied_at, now())
WHERE tenant_id = @tenant_id AND sid = @sid
RETURNING counts;

-- name: GraveCounts :one
SELECT counts FROM tombstones WHERE tenant_id = @tenant_id AND sid = @sid;

-- name: DueGraves :many
-- Takes due tombstones for a while, so that sweepers do not repeat each other.
UPDATE tombstones t
SET sweep_at = now() + interval '1 minute'
FROM (
    SELECT x.tenant_id, x.sid FROM tombstones x
    WHERE x.sweep_at <= now()
    ORDER BY x.sweep_at LIMIT @max_rows::integer
    FOR UPDATE SKIP LOCKED
) due
WHERE t.tenant_id = due.tenant_id AND t.sid = due.sid
RETURNING t.tenant_id, t.sid, t.sealed;

-- name: KeysWithPrefix :many
-- Keys with a prefix stand together; no key is as long as the upper bound.
SELECT s.session_key FROM sessions s
WHERE s.tenant_id = @tenant_id AND s.session_key >= @prefix::text AND s.session_key > @after::text
  AND s.session_key <= @prefix::text || repeat(chr(1114111), 128) AND starts_with(s.session_key, @prefix::text)
ORDER BY s.session_key LIMIT @max_rows::integer;

-- name: Expired :many
-- One page of sessions, and which of them a policy has expired (0 seconds: no
-- such rule). What a gateway holds a lease on is in use.
SELECT p.tenant_id, p.sid, p.session_key, p.created_at, p.updated_at,
       (NOT EXISTS (SELECT FROM leases l WHERE l.tenant_id = p.tenant_id AND l.sid = p.sid AND l.expires_at > now())
        AND (@age_seconds::double precision > 0 AND p.created_at < now() - make_interval(secs => @age_seconds)
             OR @idle_seconds::double precision > 0 AND p.updated_at < now() - make_interval(secs => @idle_seconds)))::boolean AS expired
FROM sessions p
WHERE (p.tenant_id, p.sid) > (@after_tenant::text, @after_sid::uuid)
ORDER BY p.tenant_id, p.sid LIMIT @max_rows::integer;

-- name: StillExpired :one
SELECT (NOT EXISTS (SELECT FROM leases l WHERE l.tenant_id = p.tenant_id AND l.sid = p.sid AND l.expires_at > now())
        AND (@age_seconds::double precision > 0 AND p.created_at < now() - make_interval(secs => @age_seconds)
             OR @idle_seconds::double precision > 0 AND p.updated_at < now() - make_interval(secs => @idle_seconds)))::boolean AS expired
FROM sessions p
WHERE p.tenant_id = @tenant_id AND p.sid = @sid;
