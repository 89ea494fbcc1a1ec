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
--
-- The first statement takes the sessions' advisory locks in sorted order and
-- nothing before it takes a transaction id, so within a session the order of
-- transaction ids is the order of seq, which is what makes the feed gap-safe.
-- The second statement therefore runs on a snapshot that is newer than every
-- earlier write to these sessions.
--
-- The answer is a JSON array with one array per item:
-- [verdict, sid, head, host_head, epoch, debt, seqs, known]
-- verdict: 0 appended, 1 busy, 2 unknown session, 3 erased, 4 key conflict,
-- 5 stale head, 6 epoch conflict, 7 stale lease, 8 all of it known already.
-- seqs has one entry per event of the item (null where a gate answered), known
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
    i_gate           integer[],
    i_budget         bigint[],
    i_owes           boolean[],
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
    e_key2           bytea[]
) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    big  CONSTANT integer := 262144;
    busy text[];
    answer jsonb;
BEGIN
    IF p_try THEN
        SELECT array_agg(l.key) INTO busy
        FROM (SELECT u.key, pg_try_advisory_xact_lock(u.id) AS ok
              FROM (SELECT DISTINCT k AS key, session_lock_id(p_tenant, k) AS id
                    FROM unnest(i_key) AS k ORDER BY 2) u) l
        WHERE NOT l.ok;
    ELSE
        PERFORM pg_advisory_xact_lock(u.id)
        FROM (SELECT DISTINCT session_lock_id(p_tenant, k) AS id
              FROM unnest(i_key) AS k ORDER BY 1) u;
    END IF;

    WITH item AS (
        SELECT i.n, i.key, coalesce(s.sid, i.sid) AS sid, s.sid IS NULL AS fresh,
               coalesce(s.head, 0) AS head, coalesce(s.host_head, 0) AS host_head,
               coalesce(s.epoch, 1) AS epoch, coalesce(s.leaf_seq, 0) AS leaf_seq,
               coalesce(s.leaf_offset, 0) AS leaf_offset, coalesce(s.base_offset, 0) AS base_offset,
               coalesce(s.hold_offset, 0) AS hold_offset, coalesce(s.factor_milli, 1000) AS factor_milli,
               coalesce(s.dialect, 0) AS dialect,
               coalesce(nullif(i.budget, 0), nullif(s.token_budget, 0)) AS budget,
               i.host, nullif(i.gateway, '') AS gateway, nullif(i.host_session, '') AS host_session,
               i.gate, i.owes, nullif(i.expected_head, -1) AS expected_head,
               nullif(i.expected_epoch, -1) AS expected_epoch, nullif(i.lease, '') AS lease,
               CASE WHEN i.key = ANY (busy) THEN 1
                    WHEN EXISTS (SELECT FROM tombstones t
                                 WHERE t.tenant_id = p_tenant AND t.session_key = i.key
                                   AND (CASE WHEN i.host_session = '' THEN s.sid IS NULL
                                        ELSE sha256(convert_to(i.host_session, 'UTF8')) = ANY (t.host_sessions) END))
                    THEN 3
                    WHEN s.sid IS NULL AND NOT i.create THEN 2
               END AS refused
        FROM ROWS FROM (unnest(i_key), unnest(i_sid), unnest(i_create), unnest(i_host), unnest(i_gateway),
                        unnest(i_host_session), unnest(i_expected_head), unnest(i_expected_epoch),
                        unnest(i_lease), unnest(i_gate), unnest(i_budget), unnest(i_owes))
             WITH ORDINALITY AS i (key, sid, create, host, gateway, host_session, expected_head,
                                   expected_epoch, lease, gate, budget, owes, n)
        LEFT JOIN sessions s ON s.tenant_id = p_tenant AND s.session_key = i.key
    ), ev AS (
        SELECT e.*, item.sid,
               least(k.seq, k2.seq) AS known_seq,
               coalesce(k.payload_hash = e.hash, true) AND coalesce(k2.payload_hash = e.hash, true) AS same
        FROM ROWS FROM (unnest(e_item), unnest(e_type), unnest(e_hash), unnest(e_body), unnest(e_version),
                        unnest(e_role), unnest(e_tokens), unnest(e_flags), unnest(e_links),
                        unnest(e_kind), unnest(e_key), unnest(e_kind2), unnest(e_key2))
             WITH ORDINALITY AS e (item, type, hash, body, version, role, tokens, flags, links,
                                   kind, key, kind2, key2, n)
        JOIN item ON item.n = e.item AND item.refused IS NULL
        LEFT JOIN event_keys k ON k.tenant_id = p_tenant AND k.sid = item.sid AND k.kind = e.kind AND k.key = e.key
        LEFT JOIN event_keys k2 ON k2.tenant_id = p_tenant AND k2.sid = item.sid AND k2.kind = e.kind2 AND k2.key = e.key2
    ), tally AS (
        SELECT ev.item, bool_or(NOT ev.same) AS conflict,
               bool_and(ev.known_seq IS NOT NULL) AS all_known,
               bool_or(ev.known_seq IS NOT NULL AND ev.n = item.gate) AS gated
        FROM ev JOIN item ON item.n = ev.item GROUP BY ev.item
    ), ruled AS (
        SELECT item.*, CASE
            WHEN item.refused IS NOT NULL THEN item.refused
            WHEN tally.conflict THEN 4
            WHEN tally.gated OR tally.all_known THEN 8
            WHEN item.lease IS NOT NULL AND NOT EXISTS (
                SELECT FROM leases l WHERE l.tenant_id = p_tenant AND l.sid = item.sid
                   AND l.token = item.lease AND l.expires_at > clock_timestamp()) THEN 7
            WHEN item.expected_head < item.host_head OR item.expected_head > item.head THEN 5
            WHEN item.expected_epoch <> item.epoch THEN 6
            ELSE 0 END AS verdict
        FROM item LEFT JOIN tally ON tally.item = item.n
    ), numbered AS (
        SELECT ev.*, r.verdict, r.epoch, r.gateway, r.host_session, r.host,
               r.verdict = 0 AND ev.known_seq IS NULL AS fresh,
               r.leaf_seq, r.leaf_offset,
               r.head + count(*) FILTER (WHERE r.verdict = 0 AND ev.known_seq IS NULL) OVER upto AS seq
        FROM ev JOIN ruled r ON r.n = ev.item
        WINDOW upto AS (PARTITION BY ev.sid ORDER BY ev.n)
    ), parented AS MATERIALIZED (
        SELECT x.*,
               x.leaf_offset + sum(CASE WHEN x.fresh THEN x.tokens ELSE 0 END) OVER upto AS offset_tokens,
               CASE WHEN x.type = 1 THEN
                   coalesce(max(x.seq) FILTER (WHERE x.fresh AND x.type = 1) OVER before, x.leaf_seq)
               ELSE 0 END AS parent_seq
        FROM numbered x
        WINDOW upto AS (PARTITION BY x.sid ORDER BY x.n),
               before AS (PARTITION BY x.sid ORDER BY x.n ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
    ), stored AS (
        INSERT INTO events (tenant_id, sid, seq, type, parent_seq, epoch, gateway, host_session_id, payload_hash,
                            body, body_ref, reader_version, role, tokens, flags, links, offset_tokens)
        SELECT p_tenant, p.sid, p.seq, p.type, p.parent_seq, p.epoch, p.gateway, p.host_session, p.hash,
               CASE WHEN length(p.body) > big THEN ''::bytea ELSE p.body END,
               CASE WHEN length(p.body) > big THEN sha256(p.body) END,
               p.version, p.role, p.tokens, p.flags, p.links, p.offset_tokens
        FROM parented p WHERE p.fresh ORDER BY p.n
    ), large AS (
        INSERT INTO bodies (tenant_id, sid, hash, body)
        SELECT DISTINCT ON (p.sid, sha256(p.body)) p_tenant, p.sid, sha256(p.body), p.body
        FROM parented p WHERE p.fresh AND length(p.body) > big
        ON CONFLICT DO NOTHING
    ), keyed AS (
        INSERT INTO event_keys (tenant_id, sid, kind, key, seq, payload_hash)
        SELECT p_tenant, p.sid, p.kind, p.key, p.seq, p.hash FROM parented p WHERE p.fresh AND p.key IS NOT NULL
        UNION ALL
        SELECT p_tenant, p.sid, p.kind2, p.key2, p.seq, p.hash FROM parented p WHERE p.fresh AND p.key2 IS NOT NULL
    ), total AS (
        SELECT p.sid, max(p.seq) AS head, max(p.seq) FILTER (WHERE p.host) AS host_head,
               max(p.seq) FILTER (WHERE p.type = 1) AS leaf_seq, max(p.offset_tokens) AS leaf_offset,
               max((p.flags >> 24) & 3) FILTER (WHERE p.type = 1) AS dialect,
               (array_agg(p.gateway ORDER BY p.n DESC) FILTER (WHERE p.gateway IS NOT NULL))[1] AS gateway,
               (array_agg(p.host_session ORDER BY p.n DESC) FILTER (WHERE p.host_session IS NOT NULL))[1] AS host_session
        FROM parented p WHERE p.fresh GROUP BY p.sid
    ), after AS (
        SELECT r.sid, min(r.key) AS key, bool_or(r.fresh) AS fresh, max(r.epoch) AS epoch,
               max(t.head) AS head, max(coalesce(t.host_head, r.host_head)) AS host_head,
               max(coalesce(t.leaf_seq, r.leaf_seq)) AS leaf_seq, max(t.leaf_offset) AS leaf_offset,
               max(r.base_offset) AS base_offset, max(r.hold_offset) AS hold_offset,
               max(r.factor_milli) AS factor_milli,
               max(CASE WHEN r.dialect = 0 THEN coalesce(t.dialect, 0) ELSE r.dialect END) AS dialect,
               (array_agg(r.budget ORDER BY r.n DESC))[1] AS budget,
               bool_or(r.owes) AS owes, max(t.gateway) AS gateway, max(t.host_session) AS host_session
        FROM ruled r JOIN total t ON t.sid = r.sid
        WHERE r.verdict = 0 GROUP BY r.sid
    ), opened AS (
        INSERT INTO sessions (tenant_id, sid, session_key, head, host_head, epoch, leaf_seq, leaf_offset,
                              token_budget, dialect, gateway, host_session_id)
        SELECT p_tenant, a.sid, a.key, a.head, a.host_head, a.epoch, a.leaf_seq, a.leaf_offset,
               coalesce(a.budget, 0), a.dialect, a.gateway, a.host_session
        FROM after a WHERE a.fresh
    ), moved AS (
        UPDATE sessions s SET head = a.head, host_head = a.host_head, leaf_seq = a.leaf_seq,
               leaf_offset = a.leaf_offset, token_budget = coalesce(a.budget, s.token_budget),
               dialect = a.dialect, gateway = coalesce(a.gateway, s.gateway),
               host_session_id = coalesce(a.host_session, s.host_session_id), updated_at = now()
        FROM after a WHERE NOT a.fresh AND s.tenant_id = p_tenant AND s.sid = a.sid
    ), owing AS (
        INSERT INTO compaction_debt AS d (tenant_id, sid, epoch, tokens, budget)
        SELECT p_tenant, a.sid, a.epoch, (a.leaf_offset - a.base_offset) * a.factor_milli / 1000,
               coalesce(a.budget, p_default_budget)
        FROM after a
        WHERE a.owes AND a.leaf_offset > a.hold_offset
          AND (a.leaf_offset - a.base_offset) * a.factor_milli > coalesce(a.budget, p_default_budget) * p_debt_milli
        ON CONFLICT (tenant_id, sid) DO UPDATE
            SET epoch = excluded.epoch, tokens = excluded.tokens, budget = excluded.budget
        RETURNING d.sid
    )
    SELECT jsonb_agg(jsonb_build_array(
               r.verdict, r.sid,
               coalesce(a.head, r.head), coalesce(a.host_head, r.host_head), r.epoch,
               EXISTS (SELECT FROM owing WHERE owing.sid = r.sid),
               CASE WHEN r.verdict = 4 THEN jsonb_build_array(rows.conflict_seq)
                    WHEN r.verdict IN (0, 8) THEN rows.seqs END,
               CASE WHEN r.verdict IN (0, 8) THEN rows.known END) ORDER BY r.n)
    INTO answer
    FROM ruled r
    LEFT JOIN after a ON a.sid = r.sid
    LEFT JOIN (
        SELECT p.item, jsonb_agg(CASE WHEN p.fresh THEN p.seq ELSE p.known_seq END ORDER BY p.n) AS seqs,
               jsonb_agg(NOT p.fresh ORDER BY p.n) AS known,
               min(p.known_seq) FILTER (WHERE NOT p.same) AS conflict_seq
        FROM parented p GROUP BY p.item
    ) rows ON rows.item = r.n;
    RETURN answer;
END
$$;
-- +goose StatementEnd
