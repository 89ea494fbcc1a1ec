-- What a tenant's events hold, by session. A count for the tenant alone went wrong
-- a little with each erasure that met a count, and what was counted too much stayed
-- for good: a session's count goes with the session.

-- +goose Up
-- +goose StatementBegin
CREATE TABLE session_bytes (
    tenant_id text COLLATE "C" NOT NULL,
    sid       uuid   NOT NULL,
    bytes     bigint NOT NULL,
    PRIMARY KEY (tenant_id, sid)
);
-- +goose StatementEnd

-- +goose StatementBegin
-- The sum of a tenant's, counted up to a place in the gap-safe order. tenant_usage
-- is the release's before; it goes with a later one.
CREATE TABLE tenant_bytes (
    tenant_id  text COLLATE "C" PRIMARY KEY,
    xid        xid8        NOT NULL,
    position   bigint      NOT NULL,
    bytes      bigint      NOT NULL,
    counted_at timestamptz NOT NULL DEFAULT now()
);
-- +goose StatementEnd

-- +goose StatementBegin
-- count_bytes adds up to p_max events that came since the last count. Those of
-- sessions that are gone do not count. Events after the newest gap-safe place wait
-- for the next one. Whoever removes a session takes the same lock: what is counted
-- here is there, and is uncounted when it goes.
CREATE FUNCTION count_bytes(p_tenant text, p_max bigint, OUT o_bytes bigint, OUT o_came bigint) LANGUAGE plpgsql AS $$
DECLARE
    at           tenant_bytes;
    to_xid       xid8;   -- how far the count has come, null for no further
    to_position  bigint;
    added        bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(7422, hashtext(p_tenant));
    SELECT * INTO at FROM tenant_bytes t WHERE t.tenant_id = p_tenant;
    WITH came AS MATERIALIZED (
        SELECT e.sid, e.xid, e.position, octet_length(e.body) + coalesce(octet_length(b.body), 0) AS bytes
        FROM events e
        LEFT JOIN bodies b ON b.tenant_id = e.tenant_id AND b.sid = e.sid AND b.hash = e.body_ref
        WHERE e.tenant_id = p_tenant AND e.xid < pg_snapshot_xmin(pg_current_snapshot())
          AND (e.xid, e.position) > (coalesce(at.xid, '0'::xid8), coalesce(at.position, 0))
        ORDER BY e.xid, e.position LIMIT p_max
    ), sizes AS (
        SELECT c.sid, sum(c.bytes) AS bytes FROM came c GROUP BY c.sid
    ), kept AS (
        INSERT INTO session_bytes AS b (tenant_id, sid, bytes)
        SELECT p_tenant, z.sid, z.bytes FROM sizes z
        CROSS JOIN LATERAL (SELECT FROM sessions s WHERE s.tenant_id = p_tenant AND s.sid = z.sid LIMIT 1) x
        ON CONFLICT (tenant_id, sid) DO UPDATE SET bytes = b.bytes + excluded.bytes
        RETURNING b.sid
    )
    SELECT (SELECT count(*) FROM came), (SELECT coalesce(sum(z.bytes), 0) FROM kept k JOIN sizes z USING (sid)), l.xid, l.position
    INTO o_came, added, to_xid, to_position
    FROM (SELECT 1) one LEFT JOIN (SELECT c.xid, c.position FROM came c ORDER BY c.xid DESC, c.position DESC LIMIT 1) l ON true;
    INSERT INTO tenant_bytes AS t (tenant_id, xid, position, bytes)
    VALUES (p_tenant, coalesce(to_xid, '0'::xid8), coalesce(to_position, 0), added)
    ON CONFLICT (tenant_id) DO UPDATE
    SET xid = coalesce(to_xid, t.xid), position = coalesce(to_position, t.position), bytes = t.bytes + added, counted_at = now()
    RETURNING t.bytes INTO o_bytes;
END
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION uncount_session() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(7422, hashtext(OLD.tenant_id));
    WITH gone AS (
        DELETE FROM session_bytes b WHERE b.tenant_id = OLD.tenant_id AND b.sid = OLD.sid RETURNING b.bytes
    )
    UPDATE tenant_bytes t SET bytes = t.bytes - g.bytes FROM gone g WHERE t.tenant_id = OLD.tenant_id;
    RETURN OLD;
END
$$;
-- +goose StatementEnd

CREATE TRIGGER uncount BEFORE DELETE ON sessions FOR EACH ROW EXECUTE FUNCTION uncount_session();

-- +goose StatementBegin
-- As before, but the session's own row first, with which its count goes.
CREATE OR REPLACE FUNCTION forget_session(p_tenant text, p_sid uuid) RETURNS void
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
        ORDER BY c.relname <> 'sessions', c.relname
    LOOP
        EXECUTE format('DELETE FROM %s WHERE tenant_id = $1 AND sid = $2', t.name) USING p_tenant, p_sid;
    END LOOP;
END
$$;
-- +goose StatementEnd

SELECT secure_tables();
