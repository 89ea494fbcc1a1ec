-- name: TakeLease :one
SELECT o_verdict::integer AS verdict, coalesce(o_token, '')::text AS token, coalesce(o_expires, now())::timestamptz AS expires_at,
       o_renewed::boolean AS renewed, coalesce(o_left_ms, 0)::bigint AS left_ms,
       coalesce(o_head, 0)::bigint AS head, coalesce(o_epoch, 0)::bigint AS epoch
FROM take_lease(@tenant_id::text, @session_key::text, @new_sid::uuid, @gateway::text, @host_session::text, @owner::text, @ttl_ms::bigint);

-- name: EndLease :execrows
-- The row stays: the next token is to be higher.
UPDATE leases l SET expires_at = clock_timestamp()
FROM sessions s
WHERE s.tenant_id = @tenant_id AND s.session_key = @session_key AND l.tenant_id = s.tenant_id AND l.sid = s.sid
  AND l.token = @token AND l.expires_at > clock_timestamp();

-- name: HoldsLease :one
SELECT EXISTS (
  SELECT FROM sessions s JOIN leases l ON l.tenant_id = s.tenant_id AND l.sid = s.sid
  WHERE s.tenant_id = @tenant_id AND s.session_key = @session_key AND l.token = @token AND l.expires_at > clock_timestamp()
);
