-- Who descends from whom. The log says it too (forked, subagent.prepared and
-- subagent.ended are in the child's); here it can be asked from both ends.

-- +goose Up
-- +goose StatementBegin
CREATE TABLE lineage (
    tenant_id      text COLLATE "C" NOT NULL,
    sid            uuid        NOT NULL,
    parent_sid     uuid        NOT NULL,
    parent_key     text COLLATE "C" NOT NULL,
    -- 1 fork, 2 isolated sub-agent, 3 sub-agent that began as a fork.
    kind           smallint    NOT NULL,
    -- The parent's head then.
    at_seq         bigint      NOT NULL,
    preparation_id text,
    -- When a sub-agent that never wrote is removed; null once it is known to have.
    expires_at     timestamptz,
    end_reason     text,
    ended_at       timestamptz,
    created_at     timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, sid)
);
CREATE INDEX lineage_children ON lineage (tenant_id, parent_sid, sid);
CREATE INDEX lineage_expiring ON lineage (expires_at) WHERE expires_at IS NOT NULL;
-- +goose StatementEnd

-- +goose StatementBegin
-- forget_session removes every row of one life of a session from every table
-- that has such rows, later ones included, as if it had never been. It is for
-- sessions that no host wrote to: an erasure leaves a tombstone and a receipt.
CREATE FUNCTION forget_session(p_tenant text, p_sid uuid) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    t record;
BEGIN
    FOR t IN
        SELECT c.oid::regclass AS name
        FROM pg_class c
        JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = current_schema()
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped
        JOIN pg_attribute b ON b.attrelid = c.oid AND b.attname = 'sid' AND NOT b.attisdropped
        WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relname <> 'tombstones'
        ORDER BY c.relname
    LOOP
        EXECUTE format('DELETE FROM %s WHERE tenant_id = $1 AND sid = $2', t.name) USING p_tenant, p_sid;
    END LOOP;
END
$$;
-- +goose StatementEnd
