-- name: CanSecureRows :one
-- Whether this role may become the tenants' one. Where the migration could not
-- make that role, nobody may.
SELECT coalesce(pg_has_role(to_regrole('engined_tenant')::oid, 'MEMBER'), false)::boolean AS can;
