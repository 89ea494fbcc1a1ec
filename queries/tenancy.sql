-- name: CanSecureRows :one
-- Whether this role may become the tenants' one, and that one use the tables.
-- Where a migration could not make it, nobody may.
SELECT coalesce(pg_has_role(to_regrole('engined_tenant')::oid, 'MEMBER')
            AND has_table_privilege(to_regrole('engined_tenant')::oid, 'events', 'INSERT'), false)::boolean AS can;

-- name: SecureTables :exec
SELECT secure_tables();
