-- name: HasSchema :one
-- Whether this database was ever migrated.
SELECT (to_regclass('goose_db_version') IS NOT NULL)::boolean AS migrated;
