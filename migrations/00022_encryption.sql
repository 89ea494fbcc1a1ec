-- Encryption at rest: which sessions are encrypted, and the keys of those whose
-- keys are kept in this database. Backups leave session_keys out.

-- +goose Up
-- +goose StatementBegin
-- What the session's first event was is what all are. A session without events
-- is not encrypted yet.
ALTER TABLE sessions ADD COLUMN sealed boolean NOT NULL DEFAULT false;
-- +goose StatementEnd
-- +goose StatementBegin
-- Whether a key is to be destroyed before the erasure is complete.
ALTER TABLE tombstones ADD COLUMN sealed boolean NOT NULL DEFAULT false;
-- +goose StatementEnd
-- +goose StatementBegin
-- A session's data key, encrypted by the master key of that id.
CREATE TABLE session_keys (
    tenant_id  text COLLATE "C" NOT NULL,
    sid        uuid        NOT NULL,
    master     text COLLATE "C" NOT NULL,
    wrapped    bytea       NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, sid)
);
-- +goose StatementEnd

-- +goose StatementBegin
-- append_events numbers and stores the events of several requests ("items").
-- The items of one session stand next to each other and share no key.
--
-- The first statement takes the sessions' advisory locks in sorted order and
-- nothing before it takes a transaction id, so within a session the order of
-- transaction ids is the order of seq, which is what makes the feed gap-safe.
-- Every later statement runs on a snapshot newer than all earlier writes to
-- these sessions. What is read and written goes by whole batch, a statement a
-- table; only the numbering goes item by item. In there no expression may hold
-- a subquery: PL/pgSQL starts the executor for it even when a condition before
-- it is false, and a lookup ahead of the loop is far cheaper.
--
-- o_verdict: 0 appended, 1 busy, 2 unknown session, 3 erased, 4 key conflict,
-- 5 stale head, 6 epoch conflict, 7 stale lease, 8 all of it known already, 10 the
-- session is encrypted and the item is not, or for another life, or the reverse.
-- o_seq is 0 where a gate answered and nothing is known of the event; on 4 the
-- item's first entry is the seq in conflict.
--
-- Absent values: '' for texts, -1 for expectations, 0 for gate and budget.
CREATE FUNCTION append_events(
    p_tenant         text,
    p_try            boolean,
    p_default_budget bigint,
    p_debt_milli     bigint,
    i_key            text[],
    i_sid            uuid[],
    i_create         boolean[],
    i_host           boolean[],
    i_gateway        text[],
    i_host_session   text[],
    i_expected_head  bigint[],
    i_expected_epoch bigint[],
    i_lease          text[],
    i_gate           integer[],  -- index of the event whose known key makes the item a duplicate
    i_budget         bigint[],
    i_owes           boolean[],
    i_events         integer[],  -- how many of the e_ entries are the item's
    i_keyed          boolean[],  -- whether any of them has a key
    i_large          boolean[],  -- whether any body belongs into bodies
    e_item           integer[],  -- index of the event's item
    e_type           smallint[],
    e_hash           bytea[],
    e_body           bytea[],
    e_version        smallint[],
    e_role           smallint[],
    e_tokens         integer[],
    e_flags          integer[],
    e_links          bytea[],
    e_kind           smallint[],
    e_key            bytea[],
    e_kind2          smallint[],
    e_key2           bytea[],
    i_sealed         boolean[],  -- whether the item is encrypted for the life i_sid; none is where it is shorter
    OUT o_verdict    integer[],
    OUT o_sid        uuid[],
    OUT o_head       bigint[],
    OUT o_host_head  bigint[],
    OUT o_epoch      bigint[],
    OUT o_debt       boolean[],
    OUT o_seq        bigint[],   -- per event
    OUT o_known      boolean[]   -- per event
) LANGUAGE plpgsql AS $$
DECLARE
    big      CONSTANT integer := 262144;
    items    CONSTANT integer := cardinality(i_key);
    -- per item
    olds     sessions[];               -- the session as found, null when new
    erased   boolean[];                -- it belongs to an erased life
    leased   boolean[];                -- its lease is held
    buried   boolean[];                -- the life that it is encrypted for is over
    -- per event
    parents  bigint[];
    offsets  bigint[];
    clashes  boolean[];                -- its key is known with another payload
    -- lists
    busy     text[] := '{}';           -- session keys
    news     integer[] := '{}';        -- events to insert
    changed  sessions[] := '{}';       -- sessions to write
    owing    sessions[] := '{}';       -- sessions in debt
    graves   boolean;                  -- some session key was erased before
    hits     boolean := false;         -- some event key is known
    hit      record;
    -- of the session or item at hand
    s        sessions;
    fresh    boolean;                  -- the session does not exist yet
    touched  boolean;                  -- the session has new events
    owes     boolean;
    debt     boolean;
    verdict  integer;
    unknown  integer;                  -- how many of the item's events are new
    gated    boolean;
    sealed   boolean;                  -- the item is encrypted
    conflict bigint;
    lo       integer;
    hi       integer := 0;
BEGIN
    IF p_try THEN
        SELECT coalesce(array_agg(l.key), '{}') INTO busy
        FROM (SELECT u.key, pg_try_advisory_xact_lock(u.id) AS ok
              FROM (SELECT DISTINCT x AS key, session_lock_id(p_tenant, x) AS id
                    FROM unnest(i_key) AS x ORDER BY 2) u) l
        WHERE NOT l.ok;
    ELSE
        PERFORM pg_advisory_xact_lock(u.id)
        FROM (SELECT DISTINCT session_lock_id(p_tenant, x) AS id
              FROM unnest(i_key) AS x ORDER BY 1) u;
    END IF;

    -- LATERAL … LIMIT 1 pins one index probe a row, whatever the planner
    -- believes of the tables' sizes.
    SELECT array_agg(x.s ORDER BY i), bool_or(t.found) INTO olds, graves
    FROM generate_series(1, items) AS i
    LEFT JOIN LATERAL (
        SELECT y AS s FROM sessions y WHERE y.tenant_id = p_tenant AND y.session_key = i_key[i] LIMIT 1) x ON true
    LEFT JOIN LATERAL (
        SELECT true AS found FROM tombstones y WHERE y.tenant_id = p_tenant AND y.key_hash = session_grave(p_tenant, i_key[i]) LIMIT 1) t ON true;

    IF graves THEN
        SELECT array_agg(EXISTS (
                   SELECT FROM tombstones t
                   WHERE t.tenant_id = p_tenant AND t.key_hash = session_grave(p_tenant, i_key[i])
                     AND (CASE WHEN i_host_session[i] = '' THEN (olds[i]).sid IS NULL
                          ELSE sha256(convert_to(i_host_session[i], 'UTF8')) = ANY (t.host_sessions) END)) ORDER BY i)
        INTO erased
        FROM generate_series(1, items) AS i;
        IF true = ANY (i_sealed) THEN
            SELECT array_agg(EXISTS (
                       SELECT FROM tombstones t WHERE t.tenant_id = p_tenant AND t.sid = i_sid[i]) ORDER BY i)
            INTO buried
            FROM generate_series(1, items) AS i;
        END IF;
    END IF;
    IF '' <> ANY (i_lease) THEN
        SELECT array_agg(EXISTS (
                   SELECT FROM leases l
                   WHERE l.tenant_id = p_tenant AND l.sid = (olds[i]).sid
                     AND l.token = i_lease[i] AND l.expires_at > clock_timestamp()) ORDER BY i)
        INTO leased
        FROM generate_series(1, items) AS i;
    END IF;

    o_seq := array_fill(0::bigint, ARRAY[cardinality(e_item)]);
    o_known := array_fill(false, ARRAY[cardinality(e_item)]);
    parents := o_seq;
    offsets := o_seq;
    clashes := o_known;
    IF true = ANY (i_keyed) THEN
        FOR hit IN
            SELECT n, coalesce(k1.seq, k2.seq) AS seq,
                   coalesce(k1.payload_hash = e_hash[n], true) AND coalesce(k2.payload_hash = e_hash[n], true) AS same
            FROM generate_series(1, cardinality(e_item)) AS n
            LEFT JOIN LATERAL (
                SELECT x.seq, x.payload_hash FROM event_keys x
                WHERE x.tenant_id = p_tenant AND x.sid = (olds[e_item[n]]).sid AND x.kind = e_kind[n] AND x.key = e_key[n]
                LIMIT 1) k1 ON true
            LEFT JOIN LATERAL (
                SELECT x.seq, x.payload_hash FROM event_keys x
                WHERE x.tenant_id = p_tenant AND x.sid = (olds[e_item[n]]).sid AND x.kind = e_kind2[n] AND x.key = e_key2[n]
                LIMIT 1) k2 ON true
            WHERE k1.seq IS NOT NULL OR k2.seq IS NOT NULL
        LOOP
            hits := true;
            o_known[hit.n] := true;
            o_seq[hit.n] := hit.seq;
            clashes[hit.n] := NOT hit.same;
        END LOOP;
    END IF;

    FOR i IN 1 .. items LOOP
        lo := hi + 1;
        hi := hi + i_events[i];
        IF i = 1 OR i_key[i] <> i_key[i - 1] THEN
            s := olds[i];
            fresh := s.sid IS NULL;
            touched := false;
            owes := false;
            IF fresh THEN
                s.tenant_id := p_tenant; s.sid := i_sid[i]; s.session_key := i_key[i];
                s.head := 0; s.host_head := 0; s.epoch := 1; s.leaf_seq := 0; s.leaf_offset := 0;
                s.base_offset := 0; s.hold_offset := 0; s.factor_milli := 1000; s.token_budget := 0; s.dialect := 0; s.sealed := false;
            END IF;
        END IF;

        -- Erased, then idempotency, then lease, then expectations.
        conflict := NULL;
        gated := false;
        sealed := coalesce(i_sealed[i], false);
        IF hits AND i_keyed[i] THEN
            unknown := i_events[i];
            FOR j IN lo .. hi LOOP
                CONTINUE WHEN NOT o_known[j];
                IF clashes[j] THEN
                    conflict := coalesce(conflict, o_seq[j]);
                END IF;
                unknown := unknown - 1;
                gated := gated OR j = i_gate[i];
            END LOOP;
            gated := gated OR unknown = 0;
        END IF;
        verdict := CASE
            WHEN i_key[i] = ANY (busy) THEN 1
            WHEN graves AND erased[i] THEN 3
            WHEN fresh AND NOT i_create[i] THEN 2
            WHEN CASE WHEN sealed THEN s.sid <> i_sid[i] OR s.head > 0 AND NOT s.sealed OR coalesce(buried[i], false) ELSE s.sealed END THEN 10
            WHEN conflict IS NOT NULL THEN 4
            WHEN gated THEN 8
            WHEN i_lease[i] <> '' AND NOT leased[i] THEN 7
            WHEN i_expected_head[i] >= 0 AND i_expected_head[i] NOT BETWEEN s.host_head AND s.head THEN 5
            WHEN i_expected_epoch[i] >= 0 AND i_expected_epoch[i] <> s.epoch THEN 6
            ELSE 0 END;

        IF verdict = 0 THEN
            touched := true;
            owes := owes OR i_owes[i];
            s.sealed := sealed;
            IF i_gateway[i] <> '' THEN s.gateway := i_gateway[i]; END IF;
            IF i_host_session[i] <> '' THEN s.host_session_id := i_host_session[i]; END IF;
            IF i_budget[i] > 0 THEN s.token_budget := i_budget[i]; END IF;
            FOR j IN lo .. hi LOOP
                CONTINUE WHEN o_known[j];
                s.head := s.head + 1;
                news := news || j;
                o_seq[j] := s.head;
                IF e_type[j] = 1 THEN
                    s.leaf_offset := s.leaf_offset + e_tokens[j];
                    parents[j] := s.leaf_seq;
                    s.leaf_seq := s.head;
                    IF s.dialect = 0 THEN
                        s.dialect := (e_flags[j] >> 24) & 3;
                    END IF;
                END IF;
                offsets[j] := s.leaf_offset;
            END LOOP;
            IF i_host[i] THEN s.host_head := s.head; END IF;
        END IF;

        debt := false;
        IF touched AND (i = items OR i_key[i + 1] <> i_key[i]) THEN
            changed := changed || s;
            debt := owes AND s.leaf_offset > s.hold_offset
                AND (s.leaf_offset - s.base_offset) * s.factor_milli
                    > coalesce(nullif(s.token_budget, 0), p_default_budget) * p_debt_milli;
            IF debt THEN
                owing := owing || s;
            END IF;
        END IF;
        IF verdict = 4 THEN
            o_seq[lo] := conflict;
        END IF;
        o_verdict[i] := verdict;
        o_sid[i] := s.sid;
        o_head[i] := s.head;
        o_host_head[i] := s.host_head;
        o_epoch[i] := s.epoch;
        o_debt[i] := debt;
    END LOOP;

    IF cardinality(news) > 0 THEN
        INSERT INTO events (tenant_id, sid, seq, type, parent_seq, epoch, gateway, host_session_id, payload_hash,
                            body, body_ref, reader_version, role, tokens, flags, links, offset_tokens)
        SELECT p_tenant, o_sid[e_item[j]], o_seq[j], e_type[j], parents[j], o_epoch[e_item[j]],
               nullif(i_gateway[e_item[j]], ''), nullif(i_host_session[e_item[j]], ''), e_hash[j],
               CASE WHEN length(e_body[j]) > big THEN ''::bytea ELSE e_body[j] END,
               CASE WHEN length(e_body[j]) > big THEN sha256(e_body[j]) END,
               e_version[j], e_role[j], e_tokens[j], e_flags[j], e_links[j], offsets[j]
        FROM unnest(news) AS j;
        IF true = ANY (i_large) THEN
            INSERT INTO bodies (tenant_id, sid, hash, body)
            SELECT p_tenant, o_sid[e_item[j]], sha256(e_body[j]), e_body[j]
            FROM unnest(news) AS j
            WHERE length(e_body[j]) > big
            ON CONFLICT DO NOTHING;
        END IF;
        IF true = ANY (i_keyed) THEN
            INSERT INTO event_keys (tenant_id, sid, kind, key, seq, payload_hash)
            SELECT p_tenant, o_sid[e_item[j]], v.kind, v.key, o_seq[j], e_hash[j]
            FROM unnest(news) AS j
            CROSS JOIN LATERAL (VALUES (e_kind[j], e_key[j]), (e_kind2[j], e_key2[j])) AS v (kind, key)
            WHERE v.key IS NOT NULL;
        END IF;
        -- Not an UPDATE … FROM, whose join the planner may turn into a scan of
        -- all sessions: ON CONFLICT always probes the index.
        INSERT INTO sessions AS x (tenant_id, sid, session_key, head, host_head, epoch, leaf_seq, leaf_offset,
                              token_budget, dialect, gateway, host_session_id, sealed)
        SELECT c.tenant_id, c.sid, c.session_key, c.head, c.host_head, c.epoch, c.leaf_seq, c.leaf_offset,
               c.token_budget, c.dialect, c.gateway, c.host_session_id, c.sealed
        FROM unnest(changed) AS c
        ON CONFLICT (tenant_id, sid) DO UPDATE
        SET head = excluded.head, host_head = excluded.host_head, leaf_seq = excluded.leaf_seq,
            leaf_offset = excluded.leaf_offset, token_budget = excluded.token_budget, dialect = excluded.dialect,
            gateway = excluded.gateway, host_session_id = excluded.host_session_id, sealed = excluded.sealed,
            updated_at = excluded.updated_at;
    END IF;
    IF cardinality(owing) > 0 THEN
        INSERT INTO compaction_debt (tenant_id, sid, epoch, tokens, budget)
        SELECT p_tenant, o.sid, o.epoch, (o.leaf_offset - o.base_offset) * o.factor_milli / 1000,
               coalesce(nullif(o.token_budget, 0), p_default_budget)
        FROM unnest(owing) AS o
        ON CONFLICT (tenant_id, sid) DO UPDATE
            SET epoch = excluded.epoch, tokens = excluded.tokens, budget = excluded.budget;
    END IF;
    RETURN;
END
$$;
-- +goose StatementEnd

-- +goose StatementBegin
-- As the release before calls it: nothing is encrypted.
CREATE OR REPLACE FUNCTION append_events(
    p_tenant         text,
    p_try            boolean,
    p_default_budget bigint,
    p_debt_milli     bigint,
    i_key            text[],
    i_sid            uuid[],
    i_create         boolean[],
    i_host           boolean[],
    i_gateway        text[],
    i_host_session   text[],
    i_expected_head  bigint[],
    i_expected_epoch bigint[],
    i_lease          text[],
    i_gate           integer[],
    i_budget         bigint[],
    i_owes           boolean[],
    i_events         integer[],
    i_keyed          boolean[],
    i_large          boolean[],
    e_item           integer[],
    e_type           smallint[],
    e_hash           bytea[],
    e_body           bytea[],
    e_version        smallint[],
    e_role           smallint[],
    e_tokens         integer[],
    e_flags          integer[],
    e_links          bytea[],
    e_kind           smallint[],
    e_key            bytea[],
    e_kind2          smallint[],
    e_key2           bytea[],
    OUT o_verdict    integer[],
    OUT o_sid        uuid[],
    OUT o_head       bigint[],
    OUT o_host_head  bigint[],
    OUT o_epoch      bigint[],
    OUT o_debt       boolean[],
    OUT o_seq        bigint[],
    OUT o_known      boolean[]
) LANGUAGE sql AS $$
    SELECT * FROM append_events(
        p_tenant, p_try, p_default_budget, p_debt_milli, i_key, i_sid, i_create, i_host, i_gateway, i_host_session,
        i_expected_head, i_expected_epoch, i_lease, i_gate, i_budget, i_owes, i_events, i_keyed, i_large, e_item,
        e_type, e_hash, e_body, e_version, e_role, e_tokens, e_flags, e_links, e_kind, e_key, e_kind2, e_key2,
        '{}'::boolean[])
$$;
-- +goose StatementEnd

SELECT secure_tables();
