-- name: TenantsToKeep :many
-- One page of the tenants of which no more than some bytes are kept: of those
-- with a size of their own, and of all where there is one for all. One probe of an
-- index a tenant.
WITH RECURSIVE tenants (tenant_id) AS (
    (SELECT x.tenant_id FROM sessions x WHERE x.tenant_id > @after_tenant::text ORDER BY x.tenant_id LIMIT 1)
    UNION ALL
    SELECT (SELECT y.tenant_id FROM sessions y WHERE y.tenant_id > t.tenant_id ORDER BY y.tenant_id LIMIT 1)
    FROM tenants t WHERE t.tenant_id IS NOT NULL
)
SELECT t.tenant_id::text AS tenant_id, coalesce(l.keep_bytes, @keep_bytes::bigint)::bigint AS keep_bytes
FROM tenants t LEFT JOIN tenant_limits l ON l.tenant_id = t.tenant_id
WHERE t.tenant_id IS NOT NULL AND coalesce(l.keep_bytes, @keep_bytes::bigint) > 0
LIMIT @max_rows::integer;

-- name: LongestIdle :many
-- A page of the sessions that were idle the longest, behind a place, and which of
-- them may go. What somebody holds the lease of is in use, and so is what a session
-- in use was forked from. Of the page alone is that asked: who inherits from a
-- session costs more to find than all else here.
SELECT p.sid, p.session_key, p.created_at, p.updated_at, m.may,
       coalesce((SELECT b.bytes FROM session_bytes b WHERE b.tenant_id = @tenant_id AND b.sid = p.sid), 0)::bigint AS bytes
FROM (
    SELECT s.sid, s.session_key, s.created_at, s.updated_at FROM sessions s
    WHERE s.tenant_id = @tenant_id AND (s.updated_at, s.sid) > (@after_updated::timestamptz, @after_sid::uuid)
      AND s.updated_at < now() - make_interval(secs => @floor_seconds::double precision)
    ORDER BY s.updated_at, s.sid LIMIT @max_rows::integer
) p
CROSS JOIN LATERAL (SELECT kept_for_nobody(@tenant_id, p.sid, @floor_seconds)::boolean AS may OFFSET 0) m
ORDER BY p.updated_at, p.sid;

-- name: KeepsForNobody :one
SELECT kept_for_nobody(@tenant_id::text, @sid::uuid, @floor_seconds::double precision)::boolean;

-- name: LockKeeping :exec
-- Those who erase for size take turns: each sees what the one before has taken
-- away.
SELECT pg_advisory_xact_lock(7421, hashtext(@tenant_id::text));

-- name: BytesKept :one
-- What was counted of a tenant, without what is erased and not gone yet.
SELECT bytes FROM tenant_bytes WHERE tenant_id = @tenant_id;
