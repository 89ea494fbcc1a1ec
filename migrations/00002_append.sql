-- The append: many requests of one tenant in one round trip, one transaction.

-- +goose Up
-- +goose StatementBegin
CREATE FUNCTION session_lock_id(p_tenant text, p_key text) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT hashtextextended(p_tenant || E'\x01' || p_key, 7420)
$$;
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
-- table; only the numbering goes item by item.
--
-- The answer is a JSON array with one array per item:
-- [verdict, sid, head, host_head, epoch, debt, seqs, known]
-- verdict: 0 appended, 1 busy, 2 unknown session, 3 erased, 4 key conflict,
-- 5 stale head, 6 epoch conflict, 7 stale lease, 8 all of it known already.
-- seqs has one entry per event of the item (0 where a gate answered), known
-- the same with true for a duplicate. On 4, seqs holds the seq in conflict.
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
    e_key2           bytea[]
) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    big      CONSTANT integer := 262144;
    items    CONSTANT integer := cardinality(i_key);
    busy     text[] := '{}';
    graves   boolean;
    all_s    sessions[];               -- an item's session as found, null when new
    sids     uuid[] := '{}';           -- per event
    seqs     bigint[];                 -- per event: of the key if known, else as numbered, else 0
    same     boolean[];                -- per event: its keys agree with its payload
    known    boolean[];                -- per event: a key names it already
    written  boolean[];                -- per event: to be inserted
    parents  bigint[];
    offsets  bigint[];
    epochs   bigint[];
    gateways text[];
    hosts    text[];
    changed  sessions[] := '{}';       -- sessions to update
    opened   sessions[] := '{}';       -- sessions to insert
    owing    sessions[] := '{}';       -- sessions in debt
    outcomes jsonb[] := '{}';
    s        sessions;
    fresh    boolean;                  -- the session does not exist yet
    touched  boolean;                  -- the session has new events
    owes     boolean;
    debt     boolean;
    verdict  integer;
    news     integer;
    gated    boolean;
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
    SELECT array_agg(x.s ORDER BY i.n) INTO all_s
    FROM unnest(i_key) WITH ORDINALITY AS i (key, n)
    LEFT JOIN LATERAL (
        SELECT y AS s FROM sessions y WHERE y.tenant_id = p_tenant AND y.session_key = i.key LIMIT 1) x ON true;
    graves := EXISTS (SELECT FROM tombstones t WHERE t.tenant_id = p_tenant AND t.session_key = ANY (i_key));

    FOR i IN 1 .. items LOOP
        sids := sids || array_fill(coalesce((all_s[i]).sid, i_sid[i]), ARRAY[i_events[i]]);
    END LOOP;
    IF true = ANY (i_keyed) THEN
        SELECT array_agg(coalesce(k.seq, k2.seq, 0) ORDER BY e.n),
               array_agg(coalesce(k.payload_hash = e.hash, true) AND coalesce(k2.payload_hash = e.hash, true) ORDER BY e.n)
        INTO seqs, same
        FROM unnest(sids, e_hash, e_kind, e_key, e_kind2, e_key2)
             WITH ORDINALITY AS e (sid, hash, kind, key, kind2, key2, n)
        LEFT JOIN LATERAL (
            SELECT x.seq, x.payload_hash FROM event_keys x
            WHERE x.tenant_id = p_tenant AND x.sid = e.sid AND x.kind = e.kind AND x.key = e.key
            LIMIT 1) k ON e.key IS NOT NULL
        LEFT JOIN LATERAL (
            SELECT x.seq, x.payload_hash FROM event_keys x
            WHERE x.tenant_id = p_tenant AND x.sid = e.sid AND x.kind = e.kind2 AND x.key = e.key2
            LIMIT 1) k2 ON e.key2 IS NOT NULL;
    ELSE
        seqs := array_fill(0::bigint, ARRAY[cardinality(sids)]);
        same := array_fill(true, ARRAY[cardinality(sids)]);
    END IF;
    written := array_fill(false, ARRAY[cardinality(sids)]);
    known := written;
    parents := array_fill(0::bigint, ARRAY[cardinality(sids)]);
    offsets := parents;
    epochs := parents;
    gateways := array_fill(NULL::text, ARRAY[cardinality(sids)]);
    hosts := gateways;

    FOR i IN 1 .. items LOOP
        lo := hi + 1;
        hi := hi + i_events[i];
        verdict := 0;
        IF i = 1 OR i_key[i] <> i_key[i - 1] THEN
            s := all_s[i];
            fresh := s.sid IS NULL;
            touched := false;
            owes := false;
            IF fresh THEN
                s.tenant_id := p_tenant; s.sid := i_sid[i]; s.session_key := i_key[i];
                s.head := 0; s.host_head := 0; s.epoch := 1; s.leaf_seq := 0; s.leaf_offset := 0;
                s.base_offset := 0; s.hold_offset := 0; s.factor_milli := 1000; s.token_budget := 0; s.dialect := 0;
            END IF;
            s.updated_at := now();
        END IF;

        -- Erased, then idempotency, then lease, then expectations.
        IF i_key[i] = ANY (busy) THEN
            verdict := 1;
        ELSIF graves AND EXISTS (
            SELECT FROM tombstones t
            WHERE t.tenant_id = p_tenant AND t.session_key = i_key[i]
              AND (CASE WHEN i_host_session[i] = '' THEN fresh
                   ELSE sha256(convert_to(i_host_session[i], 'UTF8')) = ANY (t.host_sessions) END)) THEN
            verdict := 3;
        ELSIF fresh AND NOT i_create[i] THEN
            verdict := 2;
        ELSE
            news := i_events[i];
            conflict := NULL;
            gated := false;
            IF i_keyed[i] THEN
                FOR j IN lo .. hi LOOP
                    CONTINUE WHEN seqs[j] = 0;
                    IF NOT same[j] THEN
                        conflict := coalesce(conflict, seqs[j]);
                    END IF;
                    known[j] := true;
                    news := news - 1;
                    gated := gated OR j = i_gate[i];
                END LOOP;
            END IF;
            IF conflict IS NOT NULL THEN
                verdict := 4;
            ELSIF gated OR news = 0 THEN
                verdict := 8;
            ELSIF i_lease[i] <> '' AND NOT EXISTS (
                SELECT FROM leases l WHERE l.tenant_id = p_tenant AND l.sid = s.sid
                   AND l.token = i_lease[i] AND l.expires_at > clock_timestamp()) THEN
                verdict := 7;
            ELSIF i_expected_head[i] >= 0 AND i_expected_head[i] NOT BETWEEN s.host_head AND s.head THEN
                verdict := 5;
            ELSIF i_expected_epoch[i] >= 0 AND i_expected_epoch[i] <> s.epoch THEN
                verdict := 6;
            END IF;
        END IF;

        IF verdict = 0 THEN
            touched := true;
            owes := owes OR i_owes[i];
            IF i_gateway[i] <> '' THEN s.gateway := i_gateway[i]; END IF;
            IF i_host_session[i] <> '' THEN s.host_session_id := i_host_session[i]; END IF;
            IF i_budget[i] > 0 THEN s.token_budget := i_budget[i]; END IF;
            FOR j IN lo .. hi LOOP
                CONTINUE WHEN known[j];
                s.head := s.head + 1;
                written[j] := true;
                seqs[j] := s.head;
                IF e_type[j] = 1 THEN
                    s.leaf_offset := s.leaf_offset + e_tokens[j];
                    parents[j] := s.leaf_seq;
                    s.leaf_seq := s.head;
                    IF s.dialect = 0 THEN
                        s.dialect := (e_flags[j] >> 24) & 3;
                    END IF;
                END IF;
                offsets[j] := s.leaf_offset;
                epochs[j] := s.epoch;
                gateways[j] := nullif(i_gateway[i], '');
                hosts[j] := nullif(i_host_session[i], '');
            END LOOP;
            IF i_host[i] THEN s.host_head := s.head; END IF;
        END IF;

        debt := false;
        IF touched AND (i = items OR i_key[i + 1] <> i_key[i]) THEN
            IF fresh THEN
                opened := opened || s;
            ELSE
                changed := changed || s;
            END IF;
            debt := owes AND s.leaf_offset > s.hold_offset
                AND (s.leaf_offset - s.base_offset) * s.factor_milli
                    > coalesce(nullif(s.token_budget, 0), p_default_budget) * p_debt_milli;
            IF debt THEN
                owing := owing || s;
            END IF;
        END IF;
        outcomes := outcomes || jsonb_build_array(
            verdict, s.sid, s.head, s.host_head, s.epoch, debt,
            CASE WHEN verdict IN (0, 8) THEN to_jsonb(seqs[lo:hi]) WHEN verdict = 4 THEN to_jsonb(ARRAY[conflict]) END,
            CASE WHEN verdict IN (0, 8) THEN to_jsonb(known[lo:hi]) END);
    END LOOP;

    IF true = ANY (written) THEN
        INSERT INTO events (tenant_id, sid, seq, type, parent_seq, epoch, gateway, host_session_id, payload_hash,
                            body, body_ref, reader_version, role, tokens, flags, links, offset_tokens)
        SELECT p_tenant, e.sid, e.seq, e.type, e.parent, e.epoch, e.gateway, e.host, e.hash,
               CASE WHEN length(e.body) > big THEN ''::bytea ELSE e.body END,
               CASE WHEN length(e.body) > big THEN sha256(e.body) END,
               e.version, e.role, e.tokens, e.flags, e.links, e.upto
        FROM unnest(written, sids, seqs, parents, offsets, epochs, gateways, hosts,
                    e_type, e_hash, e_body, e_version, e_role, e_tokens, e_flags, e_links)
             AS e (written, sid, seq, parent, upto, epoch, gateway, host,
                   type, hash, body, version, role, tokens, flags, links)
        WHERE e.written;
    END IF;
    IF true = ANY (i_large) THEN
        INSERT INTO bodies (tenant_id, sid, hash, body)
        SELECT p_tenant, e.sid, sha256(e.body), e.body
        FROM unnest(written, sids, e_body) AS e (written, sid, body)
        WHERE e.written AND length(e.body) > big
        ON CONFLICT DO NOTHING;
    END IF;
    IF true = ANY (i_keyed) THEN
        INSERT INTO event_keys (tenant_id, sid, kind, key, seq, payload_hash)
        SELECT p_tenant, e.sid, v.kind, v.key, e.seq, e.hash
        FROM unnest(written, sids, seqs, e_hash, e_kind, e_key, e_kind2, e_key2)
             AS e (written, sid, seq, hash, kind, key, kind2, key2)
        CROSS JOIN LATERAL (VALUES (e.kind, e.key), (e.kind2, e.key2)) AS v (kind, key)
        WHERE e.written AND v.key IS NOT NULL;
    END IF;
    IF cardinality(changed) > 0 THEN
        UPDATE sessions x SET head = c.head, host_head = c.host_head, leaf_seq = c.leaf_seq,
               leaf_offset = c.leaf_offset, token_budget = c.token_budget, dialect = c.dialect,
               gateway = c.gateway, host_session_id = c.host_session_id, updated_at = c.updated_at
        FROM unnest(changed) AS c
        WHERE x.tenant_id = p_tenant AND x.sid = c.sid;
    END IF;
    IF cardinality(opened) > 0 THEN
        INSERT INTO sessions (tenant_id, sid, session_key, head, host_head, epoch, leaf_seq, leaf_offset,
                              token_budget, dialect, gateway, host_session_id)
        SELECT o.tenant_id, o.sid, o.session_key, o.head, o.host_head, o.epoch, o.leaf_seq, o.leaf_offset,
               o.token_budget, o.dialect, o.gateway, o.host_session_id
        FROM unnest(opened) AS o;
    END IF;
    IF cardinality(owing) > 0 THEN
        INSERT INTO compaction_debt (tenant_id, sid, epoch, tokens, budget)
        SELECT p_tenant, o.sid, o.epoch, (o.leaf_offset - o.base_offset) * o.factor_milli / 1000,
               coalesce(nullif(o.token_budget, 0), p_default_budget)
        FROM unnest(owing) AS o
        ON CONFLICT (tenant_id, sid) DO UPDATE
            SET epoch = excluded.epoch, tokens = excluded.tokens, budget = excluded.budget;
    END IF;
    RETURN to_jsonb(outcomes);
END
$$;
-- +goose StatementEnd
