-- name: CreateKey :exec
INSERT INTO api_keys (id, tenant_id, name, scopes, hash, created_at, expires_at)
VALUES (@id, @tenant_id, @name, @scopes, @hash, @created_at, sqlc.narg(expires_at));

-- name: KeyByID :one
-- Of any tenant: whose key it is, is what is asked.
SELECT * FROM api_keys WHERE id = @id;

-- name: ListKeys :many
-- Of all tenants where none is named; for operators.
SELECT * FROM api_keys WHERE @tenant_id::text = '' OR tenant_id = @tenant_id
ORDER BY tenant_id, created_at, id;

-- name: CountKeys :one
-- Keys that count, of all tenants.
SELECT count(*) FROM (
    SELECT FROM api_keys WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now()) LIMIT @max_rows::integer) k;

-- name: RevokeKey :one
-- A second time changes nothing. Of any tenant; for operators.
UPDATE api_keys SET revoked_at = coalesce(revoked_at, @at::timestamptz) WHERE id = @id RETURNING *;

-- name: KeysUsed :exec
-- Of any tenant: a node's uses, in one statement.
UPDATE api_keys k SET last_used_at = u.at
FROM (SELECT unnest(@ids::text[]) AS id, unnest(@ats::timestamptz[]) AS at) u
WHERE k.id = u.id AND (k.last_used_at IS NULL OR k.last_used_at < u.at);

-- name: RecordAudit :exec
-- Rows of any tenants, each with its own.
INSERT INTO audit (tenant_id, at, key_id, request_id, method, route, session_key, status)
SELECT unnest(@tenant_ids::text[]), unnest(@ats::timestamptz[]), unnest(@key_ids::text[]), unnest(@request_ids::text[]),
       unnest(@methods::text[]), unnest(@routes::text[]), nullif(unnest(@session_keys::text[]), ''), unnest(@statuses::smallint[]);

-- name: ListAudit :many
-- Newest first.
SELECT id, at, key_id, request_id, method, route, coalesce(session_key, '') AS session_key, status FROM audit
WHERE tenant_id = @tenant_id AND id < @before::bigint
  AND (@session_key::text = '' OR session_key = @session_key)
  AND (@key_id::text = '' OR key_id = @key_id)
  AND at >= @since::timestamptz AND at < @until::timestamptz
ORDER BY id DESC LIMIT @max_rows::integer;

-- name: ForgetAudit :execrows
-- Of all tenants, in bounded steps.
DELETE FROM audit a USING (
    SELECT x.tenant_id, x.id FROM audit x WHERE x.at < @before::timestamptz LIMIT @max_rows::integer FOR UPDATE SKIP LOCKED) old
WHERE a.tenant_id = old.tenant_id AND a.id = old.id;

-- name: TenantLimits :one
SELECT * FROM tenant_limits WHERE tenant_id = @tenant_id;

-- name: ListTenantLimits :many
-- Of all tenants; for operators.
SELECT * FROM tenant_limits ORDER BY tenant_id;

-- name: SetTenantLimits :exec
INSERT INTO tenant_limits (tenant_id, rate, concurrency, sessions, storage_bytes, spend_micros, keep_bytes)
VALUES (@tenant_id, sqlc.narg(rate), sqlc.narg(concurrency), sqlc.narg(sessions), sqlc.narg(storage_bytes), sqlc.narg(spend_micros), sqlc.narg(keep_bytes))
ON CONFLICT (tenant_id) DO UPDATE SET rate = excluded.rate, concurrency = excluded.concurrency,
    sessions = excluded.sessions, storage_bytes = excluded.storage_bytes,
    spend_micros = excluded.spend_micros, keep_bytes = excluded.keep_bytes, updated_at = now();

-- name: DropTenantLimits :exec
DELETE FROM tenant_limits WHERE tenant_id = @tenant_id;

-- name: CountSessions :one
-- No further than asked.
SELECT count(*) FROM (SELECT FROM sessions WHERE tenant_id = @tenant_id LIMIT @max_rows::bigint) s;

-- name: CountBytes :one
SELECT o_bytes::bigint AS bytes, o_came::bigint AS came FROM count_bytes(@tenant_id::text, @max_rows::bigint);
