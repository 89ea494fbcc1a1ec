-- Leases with fencing tokens, and erasure: a tombstone hides a session at once,
-- then its rows go in bounded batches.

-- +goose Up
-- +goose StatementBegin
-- Grows with every change of hands. The token is its text, of a fixed width.
ALTER TABLE leases ADD COLUMN fence bigint NOT NULL DEFAULT 0;
-- +goose StatementEnd

-- +goose StatementBegin
-- session_grave is what a tombstone knows an erased session by: a key often
-- names a person, so the key itself goes too.
CREATE FUNCTION session_grave(p_tenant text, p_key text) RETURNS bytea
LANGUAGE sql IMMUTABLE AS $$
    SELECT sha256(convert_to(p_tenant || E'\x01' || p_key, 'UTF8'))
$$;
-- +goose StatementEnd

-- +goose StatementBegin
ALTER TABLE tombstones ALTER COLUMN session_key TYPE bytea USING session_grave(tenant_id, session_key);
-- +goose StatementEnd
-- +goose StatementBegin
ALTER TABLE tombstones RENAME COLUMN session_key TO key_hash;
-- +goose StatementEnd
-- +goose StatementBegin
-- The receipt: how many rows of each table went.
ALTER TABLE tombstones ADD COLUMN counts jsonb NOT NULL DEFAULT '{}';
-- +goose StatementEnd
-- +goose StatementBegin
-- When the last row had gone; null while some may be left.
ALTER TABLE tombstones ADD COLUMN emptied_at timestamptz;
-- +goose StatementEnd
-- +goose StatementBegin
-- When the sweep is to look next; null when it never needs to again.
ALTER TABLE tombstones ADD COLUMN sweep_at timestamptz;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE UNIQUE INDEX tombstones_by_sid ON tombstones (tenant_id, sid);
-- +goose StatementEnd
-- +goose StatementBegin
CREATE INDEX tombstones_to_sweep ON tombstones (sweep_at) WHERE sweep_at IS NOT NULL;
-- +goose StatementEnd

-- +goose StatementBegin
-- append_events looks tombstones up by what they are known by now. Its text is
-- changed in place, so that whatever else it does stays as it is.
DO $$
DECLARE
    fn   CONSTANT regprocedure := (SELECT p.oid FROM pg_proc p WHERE p.proname = 'append_events' AND p.pronamespace = (
                                       SELECT c.relnamespace FROM pg_class c WHERE c.oid = 'sessions'::regclass));
    src  CONSTANT text := pg_get_functiondef(fn);
    next CONSTANT text := replace(replace(src,
        'y.tenant_id = p_tenant AND y.session_key = i_key[i] LIMIT 1) t ON true',
        'y.tenant_id = p_tenant AND y.key_hash = session_grave(p_tenant, i_key[i]) LIMIT 1) t ON true'),
        't.tenant_id = p_tenant AND t.session_key = i_key[i]',
        't.tenant_id = p_tenant AND t.key_hash = session_grave(p_tenant, i_key[i])');
BEGIN
    IF (length(next) - length(replace(next, 'session_grave(', ''))) / length('session_grave(') <> 2 THEN
        RAISE EXCEPTION 'append_events looks tombstones up in a way that this migration does not know';
    END IF;
    EXECUTE next;
END
$$;
-- +goose StatementEnd

-- +goose StatementBegin
-- session_erased: whether a write that names this host session ('' for none)
-- belongs to an erased life. append_events holds writes to the same rule.
CREATE FUNCTION session_erased(p_tenant text, p_key text, p_host_session text) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT EXISTS (
        SELECT FROM tombstones t
        WHERE t.tenant_id = p_tenant AND t.key_hash = session_grave(p_tenant, p_key)
          AND CASE WHEN p_host_session = ''
                   THEN NOT EXISTS (SELECT FROM sessions s WHERE s.tenant_id = p_tenant AND s.session_key = p_key)
                   ELSE sha256(convert_to(p_host_session, 'UTF8')) = ANY (t.host_sessions) END)
$$;
-- +goose StatementEnd

-- +goose StatementBegin
-- take_lease gives, renews or refuses a session's lease and opens the session
-- where it is missing. As in append_events the lock comes first, and every
-- later statement sees what was committed before it. Only this server's clock
-- counts.
--
-- o_verdict: 0 given, 3 erased, 9 held by another owner.
CREATE FUNCTION take_lease(
    p_tenant       text,
    p_key          text,
    p_sid          uuid,     -- of the session, where it is new
    p_gateway      text,
    p_host_session text,
    p_owner        text,
    p_ttl_ms       bigint,
    OUT o_verdict  integer,
    OUT o_token    text,
    OUT o_expires  timestamptz,
    OUT o_renewed  boolean,
    OUT o_left_ms  bigint,   -- until the lease ends, by this clock
    OUT o_head     bigint,
    OUT o_epoch    bigint
) LANGUAGE plpgsql AS $$
DECLARE
    s   sessions;
    l   leases;
    now CONSTANT timestamptz := clock_timestamp();
BEGIN
    PERFORM pg_advisory_xact_lock(session_lock_id(p_tenant, p_key));
    o_renewed := false;
    IF session_erased(p_tenant, p_key, p_host_session) THEN
        o_verdict := 3;
        RETURN;
    END IF;
    SELECT * INTO s FROM sessions x WHERE x.tenant_id = p_tenant AND x.session_key = p_key;
    IF s.sid IS NULL THEN
        INSERT INTO sessions (tenant_id, sid, session_key, head, host_head, epoch, leaf_seq, leaf_offset, gateway, host_session_id)
        VALUES (p_tenant, p_sid, p_key, 0, 0, 1, 0, 0, nullif(p_gateway, ''), nullif(p_host_session, ''))
        RETURNING * INTO s;
    END IF;
    SELECT * INTO l FROM leases x WHERE x.tenant_id = p_tenant AND x.sid = s.sid;
    IF l.expires_at > now THEN
        IF l.owner <> p_owner THEN
            o_verdict := 9;
            o_expires := l.expires_at;
            o_left_ms := ceil(extract(epoch FROM l.expires_at - now) * 1000);
            RETURN;
        END IF;
        o_renewed := true;
    ELSE
        -- Time is in it so that no two lives of a key share a token, and what
        -- was before so that it grows even if the clock goes back.
        l.fence := greatest(coalesce(l.fence, 0) + 1, (extract(epoch FROM now) * 1000000)::bigint);
        l.token := lpad(l.fence::text, 16, '0');
    END IF;
    INSERT INTO leases AS x (tenant_id, sid, owner, token, expires_at, fence)
    VALUES (p_tenant, s.sid, p_owner, l.token, now + p_ttl_ms * interval '1 millisecond', l.fence)
    ON CONFLICT (tenant_id, sid) DO UPDATE
        SET owner = excluded.owner, token = excluded.token, expires_at = excluded.expires_at, fence = excluded.fence
    RETURNING x.expires_at, x.token INTO o_expires, o_token;
    o_verdict := 0;
    o_left_ms := p_ttl_ms;
    o_head := s.head;
    o_epoch := s.epoch;
END
$$;
-- +goose StatementEnd

-- +goose StatementBegin
-- session_tables are the tables that hold something of a session, found in the
-- catalogue: a table that names tenant and sid is erased with its session from
-- the day that it exists. The session's own row and its tombstone are apart.
CREATE FUNCTION session_tables() RETURNS SETOF text
LANGUAGE sql STABLE AS $$
    SELECT c.relname::text
    FROM pg_class c
    WHERE c.relnamespace = (SELECT x.relnamespace FROM pg_class x WHERE x.oid = 'sessions'::regclass)
      AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relname NOT IN ('sessions', 'tombstones')
      AND (SELECT count(*) FROM pg_attribute a
           WHERE a.attrelid = c.oid AND NOT a.attisdropped AND a.attname IN ('tenant_id', 'sid')) = 2
    ORDER BY 1
$$;
-- +goose StatementEnd

-- +goose StatementBegin
-- known_host_sessions are all host session ids that any table knows a session by.
CREATE FUNCTION known_host_sessions(p_tenant text, p_sid uuid) RETURNS SETOF text
LANGUAGE plpgsql STABLE AS $$
DECLARE
    t text;
BEGIN
    FOR t IN
        SELECT n FROM (SELECT 'sessions' AS n UNION ALL SELECT session_tables()) x
        WHERE EXISTS (SELECT FROM pg_attribute a
                      WHERE a.attrelid = n::regclass AND NOT a.attisdropped AND a.attname = 'host_session_id')
    LOOP
        RETURN QUERY EXECUTE format(
            'SELECT DISTINCT host_session_id::text FROM %I WHERE tenant_id = $1 AND sid = $2 AND host_session_id <> ''''', t)
            USING p_tenant, p_sid;
    END LOOP;
END
$$;
-- +goose StatementEnd

-- +goose StatementBegin
-- disguise_key puts the hash in the place of an erased session's key wherever
-- a table names sessions by key alone, as a log of who did what does. Rows of a
-- new life under the key are disguised alike if they are there already.
CREATE FUNCTION disguise_key(p_tenant text, p_sid uuid) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    grave CONSTANT bytea := (SELECT t.key_hash FROM tombstones t WHERE t.tenant_id = p_tenant AND t.sid = p_sid);
    t     text;
BEGIN
    FOR t IN
        SELECT c.relname
        FROM pg_class c
        WHERE c.relnamespace = (SELECT x.relnamespace FROM pg_class x WHERE x.oid = 'sessions'::regclass)
          AND c.relkind IN ('r', 'p') AND NOT c.relispartition
          AND (SELECT count(*) FILTER (WHERE a.attname IN ('tenant_id', 'session_key')) = 2 AND bool_and(a.attname <> 'sid')
               FROM pg_attribute a WHERE a.attrelid = c.oid AND NOT a.attisdropped)
    LOOP
        EXECUTE format('UPDATE %I SET session_key = $3 WHERE tenant_id = $1 AND session_grave(tenant_id, session_key) = $2', t)
            USING p_tenant, grave, 'erased:' || encode(grave, 'hex');
    END LOOP;
END
$$;
-- +goose StatementEnd

-- +goose StatementBegin
-- erase_rows deletes up to p_max rows of an erased session from one of
-- session_tables and adds them to its receipt. It does nothing to a session
-- that has no tombstone.
CREATE FUNCTION erase_rows(p_tenant text, p_sid uuid, p_table text, p_max integer) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    n bigint;
BEGIN
    IF NOT EXISTS (SELECT FROM session_tables() x WHERE x = p_table) THEN
        RAISE EXCEPTION '% is not a table of sessions', p_table;
    END IF;
    IF NOT EXISTS (SELECT FROM tombstones t WHERE t.tenant_id = p_tenant AND t.sid = p_sid) THEN
        RETURN 0;
    END IF;
    EXECUTE format(
        'DELETE FROM %1$I WHERE tenant_id = $1 AND sid = $2 AND ctid = ANY (ARRAY(
             SELECT ctid FROM %1$I WHERE tenant_id = $1 AND sid = $2 LIMIT $3))', p_table)
        USING p_tenant, p_sid, p_max;
    GET DIAGNOSTICS n = ROW_COUNT;
    IF n > 0 THEN
        UPDATE tombstones t
        SET counts = t.counts || jsonb_build_object(p_table, coalesce((t.counts ->> p_table)::bigint, 0) + n)
        WHERE t.tenant_id = p_tenant AND t.sid = p_sid;
    END IF;
    RETURN n;
END
$$;
-- +goose StatementEnd
