-- name: SessionKey :one
SELECT master, wrapped FROM session_keys WHERE tenant_id = @tenant_id AND sid = @sid;

-- name: PutSessionKey :one
-- The first one counts; whoever comes second gets it.
INSERT INTO session_keys AS k (tenant_id, sid, master, wrapped) VALUES (@tenant_id, @sid, @master, @wrapped)
ON CONFLICT (tenant_id, sid) DO UPDATE SET master = k.master
RETURNING master, wrapped;

-- name: DropSessionKey :exec
DELETE FROM session_keys WHERE tenant_id = @tenant_id AND sid = @sid;

-- name: SessionKeysByMaster :many
-- Of all tenants; for operators. A few keys of each stand for all.
SELECT c.master, c.keys, s.tenant_id, s.sid, s.wrapped
FROM (SELECT k.master, count(*) AS keys FROM session_keys k GROUP BY k.master) c
CROSS JOIN LATERAL (
    SELECT x.tenant_id, x.sid, x.wrapped FROM session_keys x WHERE x.master = c.master LIMIT 50) s
ORDER BY c.master;

-- name: SessionKeysNotUnder :many
-- Of all tenants; for operators.
SELECT tenant_id, sid, master, wrapped FROM session_keys
WHERE master <> @master AND (tenant_id, sid) > (@after_tenant::text, @after_sid::uuid)
ORDER BY tenant_id, sid LIMIT @max_rows::integer;

-- name: RewrapSessionKey :execrows
UPDATE session_keys SET master = @master, wrapped = @wrapped
WHERE tenant_id = @tenant_id AND sid = @sid AND master = @old_master AND wrapped = @old_wrapped;

-- name: JobSession :one
SELECT sid, key FROM summarization_jobs WHERE tenant_id = @tenant_id AND id = @id;

-- name: SealedSession :one
-- Whether a session is encrypted, and whether that is so for good.
SELECT s.sealed, (s.head > 0)::boolean AS settled FROM sessions s WHERE s.tenant_id = @tenant_id AND s.sid = @sid;

-- name: CountSealed :one
-- Sessions that are encrypted, of all tenants, and those that are not.
SELECT count(*) FILTER (WHERE s.sealed) AS sealed, count(*) FILTER (WHERE NOT s.sealed) AS plain FROM sessions s;

-- name: NewestSealed :many
-- Encrypted sessions of all tenants, those that began last; for operators.
SELECT s.tenant_id, s.sid FROM sessions s WHERE s.sealed AND s.head > 0 ORDER BY s.sid DESC LIMIT @max_rows::integer;

-- name: SealedAmong :one
-- Whether any of a tenant's sessions is encrypted; of those named, if any are.
SELECT (CASE WHEN cardinality(@sids::uuid[]) = 0
    THEN EXISTS (SELECT FROM sessions s WHERE s.tenant_id = @tenant_id AND s.sealed)
    ELSE EXISTS (
        SELECT FROM unnest(@sids::uuid[]) AS u (sid)
        CROSS JOIN LATERAL (SELECT x.sealed FROM sessions x WHERE x.tenant_id = @tenant_id AND x.sid = u.sid LIMIT 1) s
        WHERE s.sealed)
    END)::boolean AS found;
