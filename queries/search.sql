-- name: SearchBehind :many
-- Tenants with events that search has not indexed. A step per tenant, by the
-- indexes of sessions and of the feed.
WITH RECURSIVE tenant AS (
    (SELECT s.tenant_id FROM sessions s ORDER BY s.tenant_id LIMIT 1)
    UNION ALL
    (SELECT (SELECT s.tenant_id FROM sessions s WHERE s.tenant_id > t.tenant_id ORDER BY s.tenant_id LIMIT 1)
     FROM tenant t WHERE t.tenant_id IS NOT NULL)
)
SELECT t.tenant_id::text AS tenant_id FROM tenant t
LEFT JOIN search_cursors c ON c.tenant_id = t.tenant_id
CROSS JOIN LATERAL (
    SELECT e.xid FROM events e
    WHERE e.tenant_id = t.tenant_id
      AND (e.xid, e.position) > (coalesce(c.xid, '0'::xid8), coalesce(c.position, 0))
    ORDER BY e.tenant_id, e.xid, e.position LIMIT 1) f
WHERE t.tenant_id IS NOT NULL AND coalesce(c.claimed_until, '-infinity') <= now()
  AND f.xid < pg_snapshot_xmin(pg_current_snapshot())
ORDER BY coalesce(c.updated_at, '-infinity') LIMIT @max_rows::integer;

-- name: SearchLag :one
-- How many events of all tenants search has not indexed, counted up to most a
-- tenant, and for how long the oldest waits.
WITH RECURSIVE tenant AS (
    (SELECT s.tenant_id FROM sessions s ORDER BY s.tenant_id LIMIT 1)
    UNION ALL
    (SELECT (SELECT s.tenant_id FROM sessions s WHERE s.tenant_id > t.tenant_id ORDER BY s.tenant_id LIMIT 1)
     FROM tenant t WHERE t.tenant_id IS NOT NULL)
)
SELECT count(f.recorded_at) AS events, coalesce(extract(epoch FROM now() - min(f.recorded_at)), 0)::double precision AS seconds
FROM tenant t
LEFT JOIN search_cursors c ON c.tenant_id = t.tenant_id
CROSS JOIN LATERAL (
    SELECT e.recorded_at FROM events e
    WHERE e.tenant_id = t.tenant_id
      AND (e.xid, e.position) > (coalesce(c.xid, '0'::xid8), coalesce(c.position, 0))
    ORDER BY e.tenant_id, e.xid, e.position LIMIT @most::integer) f
WHERE t.tenant_id IS NOT NULL;

-- name: SearchClaim :many
-- Takes a tenant for a while. No row: another one has it.
INSERT INTO search_cursors AS c (tenant_id, xid, position, claimed_until)
VALUES (@tenant_id, '0'::xid8, 0, now() + make_interval(secs => @seconds::double precision))
ON CONFLICT (tenant_id) DO UPDATE SET claimed_until = excluded.claimed_until WHERE c.claimed_until <= now()
RETURNING xid, position;

-- name: SearchRelease :exec
UPDATE search_cursors SET claimed_until = '-infinity' WHERE tenant_id = @tenant_id;

-- name: SearchAdvance :execrows
-- Compare and swap: of two who read the same events, one writes.
UPDATE search_cursors
SET xid = @xid, position = @position, updated_at = now(),
    claimed_until = now() + make_interval(secs => @seconds::double precision)
WHERE tenant_id = @tenant_id AND xid = @from_xid AND position = @from_position;

-- name: SearchHoldSessions :many
-- Those that exist, kept from being erased until this transaction ends. Appends
-- go on meanwhile.
SELECT s.sid FROM sessions s
WHERE s.tenant_id = @tenant_id AND s.sid = ANY (@sids::uuid[])
ORDER BY s.sid FOR KEY SHARE;

-- name: SearchHoldSummaries :many
-- Summaries as they are, kept from being blanked until this transaction ends.
SELECT e.sid, e.seq, coalesce((SELECT b.body FROM bodies b WHERE b.tenant_id = e.tenant_id AND b.sid = e.sid AND b.hash = e.body_ref), e.body)::bytea AS body
FROM (SELECT unnest(@sids::uuid[]) AS sid, unnest(@seqs::bigint[]) AS seq) u
JOIN events e ON e.tenant_id = @tenant_id AND e.sid = u.sid AND e.seq = u.seq
ORDER BY e.sid, e.seq FOR SHARE OF e;

-- name: SearchWriteParts :exec
INSERT INTO search_parts (tenant_id, sid, seq, part, kind, role, flags, epoch, tokens, length, tool, speaker, at, terms, body)
SELECT @tenant_id, u.sid, u.seq, u.part, u.kind, u.role, u.flags, u.epoch, u.tokens, u.length, u.tool, u.speaker, u.at, u.terms::tsvector, u.body
FROM (
    SELECT unnest(@sids::uuid[]) AS sid, unnest(@seqs::bigint[]) AS seq, unnest(@parts::integer[]) AS part,
           unnest(@kinds::smallint[]) AS kind, unnest(@roles::smallint[]) AS role, unnest(@flags::integer[]) AS flags,
           unnest(@epochs::bigint[]) AS epoch, unnest(@tokens::integer[]) AS tokens, unnest(@lengths::integer[]) AS length,
           unnest(@tools::text[]) AS tool, unnest(@speakers::text[]) AS speaker, unnest(@ats::timestamptz[]) AS at,
           unnest(@terms::text[]) AS terms, unnest(@bodies::text[]) AS body) u
WHERE u.sid = ANY (@held::uuid[])
ON CONFLICT (tenant_id, sid, seq, part) DO NOTHING;

-- name: SearchWriteSessions :exec
INSERT INTO search_sessions AS s (tenant_id, sid, seq, parts, length)
SELECT @tenant_id, u.sid, u.seq, u.parts, u.length
FROM (SELECT unnest(@sids::uuid[]) AS sid, unnest(@seqs::bigint[]) AS seq,
             unnest(@parts::bigint[]) AS parts, unnest(@lengths::bigint[]) AS length) u
WHERE u.sid = ANY (@held::uuid[])
ORDER BY u.sid
ON CONFLICT (tenant_id, sid) DO UPDATE
SET seq = greatest(s.seq, excluded.seq), parts = s.parts + excluded.parts, length = s.length + excluded.length;

-- name: SearchForgetParts :execrows
DELETE FROM search_parts WHERE tenant_id = @tenant_id;

-- name: SearchForgetSessions :exec
DELETE FROM search_sessions WHERE tenant_id = @tenant_id;

-- name: SearchRewind :exec
UPDATE search_cursors SET xid = '0'::xid8, position = 0, claimed_until = '-infinity', updated_at = now() WHERE tenant_id = @tenant_id;

-- name: SearchTenants :many
SELECT tenant_id FROM search_cursors ORDER BY tenant_id;

-- name: SearchEraseParts :execrows
DELETE FROM search_parts WHERE tenant_id = @tenant_id AND sid = @sid;

-- name: SearchEraseSession :execrows
DELETE FROM search_sessions WHERE tenant_id = @tenant_id AND sid = @sid;

-- name: SearchState :one
-- How far the index is: the newest document, the sums, and whether the feed has more.
SELECT coalesce((SELECT max(p.doc) FROM search_parts p WHERE p.tenant_id = @tenant_id), 0)::bigint AS doc,
       coalesce((SELECT sum(s.parts) FROM search_sessions s
                 WHERE s.tenant_id = @tenant_id AND (cardinality(@sids::uuid[]) = 0 OR s.sid = ANY (@sids::uuid[]))), 0)::bigint AS parts,
       coalesce((SELECT sum(s.length) FROM search_sessions s
                 WHERE s.tenant_id = @tenant_id AND (cardinality(@sids::uuid[]) = 0 OR s.sid = ANY (@sids::uuid[]))), 0)::bigint AS length,
       coalesce((SELECT s.seq FROM search_sessions s
                 WHERE s.tenant_id = @tenant_id AND s.sid = (@sids::uuid[])[cardinality(@sids::uuid[])]), 0)::bigint AS seq,
       coalesce((SELECT c.updated_at FROM search_cursors c WHERE c.tenant_id = @tenant_id), 'epoch')::timestamptz AS indexed_at,
       -- 0: the feed has no more, 1: more, held back by an older transaction, 2: more.
       -- The cursor comes as scalars: else neither a join nor a policy lets it reach the index.
       coalesce((SELECT CASE WHEN e.xid < pg_snapshot_xmin(pg_current_snapshot()) THEN 2 ELSE 1 END
                 FROM events e
                 WHERE e.tenant_id = @tenant_id
                   AND (e.xid, e.position) > (
                       (SELECT coalesce((SELECT c.xid FROM search_cursors c WHERE c.tenant_id = @tenant_id), '0'::xid8)),
                       (SELECT coalesce((SELECT c.position FROM search_cursors c WHERE c.tenant_id = @tenant_id), 0)))
                 ORDER BY e.tenant_id, e.xid, e.position LIMIT 1), 0)::integer AS ahead;

-- name: SearchCounts :many
-- In how many parts each entry is, counted up to a bound.
SELECT u.i::bigint AS i, c.n::bigint AS n
FROM unnest(@queries::text[]) WITH ORDINALITY AS u (query, i)
CROSS JOIN LATERAL (
    SELECT count(*) AS n FROM (
        SELECT FROM search_parts p
        WHERE p.terms @@ u.query::tsquery AND p.tenant_id IS NOT DISTINCT FROM @tenant_id::text AND p.doc + 0 <= @horizon::bigint
        LIMIT @most::integer) x) c;

-- name: SearchAll :many
-- Messages that have every entry, best first; see the function.
SELECT a.sid::uuid AS sid, a.seq::bigint AS seq, a.doc::bigint AS doc, a.score::double precision AS score
FROM search_all(@tenant_id::text, @query::text, @ranked::text, @rarest::text, @queries::text[], @average::double precision, @best::double precision,
    @horizon::bigint, @before_score::double precision, @before_doc::bigint, @most::integer, @max_rows::integer,
    @kinds::smallint[], @roles::smallint[], @tool::text, @epoch::bigint, @since::timestamptz, @until::timestamptz, @hidden::integer, @sids::uuid[], @paths::text[]) a
ORDER BY a.score DESC, a.doc DESC;

-- name: SearchNewest :many
-- As SearchAll, newest first and without a score, from the rarest entry on;
-- before_doc is where the page before ended.
WITH found AS (
    SELECT p.sid, p.seq, p.doc FROM search_parts p
    WHERE p.terms @@ (@query::text)::tsquery AND p.tenant_id IS NOT DISTINCT FROM @tenant_id::text
      AND p.doc + 0 <= @horizon::bigint AND p.doc + 0 < @before_doc::bigint
      AND search_fits(p.sid, p.seq, p.kind, p.role, p.tool, p.epoch, p.at, p.flags, @kinds::smallint[], @roles::smallint[], @tool::text, @epoch::bigint, @since::timestamptz, @until::timestamptz, @hidden::integer, @sids::uuid[], @paths::text[])
      AND NOT EXISTS (
        SELECT FROM unnest(@queries::text[]) AS q (query)
        WHERE NOT EXISTS (
            SELECT FROM search_parts x
            WHERE x.tenant_id = p.tenant_id AND x.sid = p.sid AND x.seq = p.seq AND x.terms @@ q.query::tsquery))
)
SELECT f.sid, f.seq, min(f.doc)::bigint AS doc FROM found f
GROUP BY f.sid, f.seq ORDER BY min(f.doc) DESC LIMIT @max_rows::integer;

-- name: SearchAny :many
-- Messages that have some of the entries, by a rank that knows whether a part
-- has an entry, not how often. Where counts has nothing, what is found is
-- counted: that is all there is while nothing narrows it.
WITH hit AS MATERIALIZED (
    SELECT u.i, p.sid, p.seq, p.doc, 2.2::double precision / (1 + 1.2::double precision * (0.3::double precision + 0.7::double precision * p.length / @average::double precision)) AS share
    FROM unnest(@queries::text[]) WITH ORDINALITY AS u (query, i)
    CROSS JOIN LATERAL (
        SELECT p.sid, p.seq, p.doc, p.length FROM search_parts p
        WHERE p.terms @@ u.query::tsquery AND p.tenant_id IS NOT DISTINCT FROM @tenant_id::text AND p.doc + 0 <= @horizon::bigint
          AND search_fits(p.sid, p.seq, p.kind, p.role, p.tool, p.epoch, p.at, p.flags, @kinds::smallint[], @roles::smallint[], @tool::text, @epoch::bigint, @since::timestamptz, @until::timestamptz, @hidden::integer, @sids::uuid[], @paths::text[])
        ORDER BY p.doc DESC LIMIT @most::integer) p
), counted AS MATERIALIZED (
    SELECT w.i, w.weight, @parts::double precision AS parts, coalesce((@counts::bigint[])[w.i], n.n, 0)::double precision AS n
    FROM unnest(@weights::double precision[]) WITH ORDINALITY AS w (weight, i)
    LEFT JOIN (SELECT h.i, count(*) AS n FROM hit h GROUP BY h.i) n ON n.i = w.i
), part AS (
    SELECT h.sid, h.seq, h.doc, sum(h.share * c.weight * ln(1 + (greatest(c.parts - c.n, 0) + 0.5::double precision) / (c.n + 0.5::double precision))) AS score
    FROM hit h JOIN counted c ON c.i = h.i
    GROUP BY h.sid, h.seq, h.doc
), message AS (
    SELECT p.sid, p.seq, max(p.doc) AS doc, max(p.score) AS score FROM part p GROUP BY p.sid, p.seq
)
SELECT m.sid, m.seq, m.doc::bigint AS doc, m.score::double precision AS score,
       (SELECT array_agg(c.n::bigint ORDER BY c.i) FROM counted c)::bigint[] AS counts
FROM message m
WHERE (m.score, m.doc) < (@before_score::double precision, @before_doc::bigint)
ORDER BY m.score DESC, m.doc DESC LIMIT @max_rows::integer;

-- name: SearchTexts :many
-- The parts of messages, as many as max_bytes hold, in the order asked for.
SELECT t.sid, t.seq, t.part, t.doc, t.kind, t.role, t.flags, t.epoch, t.tokens, t.length, t.tool, t.speaker, t.at, t.body, t.session_key
FROM (
    SELECT p.sid, p.seq, p.part, p.doc, p.kind, p.role, p.flags, p.epoch, p.tokens, p.length, p.tool, p.speaker, p.at, p.body, s.session_key, u.i, sum(octet_length(p.body)) OVER (ORDER BY u.i, p.part) AS bytes
    FROM (SELECT unnest(@want_sids::uuid[]) AS sid, unnest(@want_seqs::bigint[]) AS seq, generate_series(1, cardinality(@want_sids::uuid[])) AS i) u
    CROSS JOIN LATERAL (
        SELECT x.sid, x.seq, x.part, x.doc, x.kind, x.role, x.flags, x.epoch, x.tokens, x.length, x.tool, x.speaker, x.at, x.body FROM search_parts x
        WHERE x.tenant_id = @tenant_id AND x.sid = u.sid AND x.seq = u.seq
          -- No summary that may be of what an erased ancestor said.
          AND NOT (x.kind = 4 AND EXISTS (SELECT FROM forgetting f WHERE f.tenant_id = @tenant_id AND f.sid = x.sid))
          AND (@query::text = ''
               -- One part alone is what was found; its terms need not be read.
               OR NOT EXISTS (SELECT FROM search_parts y WHERE y.tenant_id = @tenant_id AND y.sid = u.sid AND y.seq = u.seq AND y.part = 1)
               OR x.terms @@ (@query::text)::tsquery)
          AND search_fits(x.sid, x.seq, x.kind, x.role, x.tool, x.epoch, x.at, x.flags, @kinds::smallint[], @roles::smallint[], @tool::text, @epoch::bigint, @since::timestamptz, @until::timestamptz, @hidden::integer, @sids::uuid[], @paths::text[])
        ORDER BY x.part LIMIT @parts_each::integer) p
    JOIN sessions s ON s.tenant_id = @tenant_id AND s.sid = p.sid
) t
WHERE t.bytes - octet_length(t.body) < @max_bytes::bigint
ORDER BY t.i, t.part;

-- name: SearchNeighbours :many
-- The messages around others: one before (-1), two behind (1, 2). doc is of the
-- first of their parts that is asked for; one without is left out.
SELECT u.i::bigint AS i, n.place::integer AS place, n.seq, f.doc
FROM (SELECT unnest(@want_sids::uuid[]) AS sid, unnest(@want_seqs::bigint[]) AS seq, generate_series(1, cardinality(@want_sids::uuid[])) AS i) u
CROSS JOIN LATERAL (
    (SELECT -1 AS place, p.seq FROM search_parts p
     WHERE p.tenant_id = @tenant_id AND p.sid = u.sid AND p.seq < u.seq AND p.part = 0 ORDER BY p.seq DESC LIMIT 1)
    UNION ALL
    (SELECT row_number() OVER (ORDER BY b.seq)::integer, b.seq FROM (
        SELECT p.seq FROM search_parts p
        WHERE p.tenant_id = @tenant_id AND p.sid = u.sid AND p.seq > u.seq AND p.part = 0 ORDER BY p.seq LIMIT 2) b)) n
CROSS JOIN LATERAL (
    SELECT x.doc FROM search_parts x
    WHERE x.tenant_id = @tenant_id AND x.sid = u.sid AND x.seq = n.seq
      AND search_fits(x.sid, x.seq, x.kind, x.role, x.tool, x.epoch, x.at, x.flags, @kinds::smallint[], @roles::smallint[], @tool::text, @epoch::bigint, @since::timestamptz, @until::timestamptz, @hidden::integer, @sids::uuid[], @paths::text[])
    ORDER BY x.part LIMIT 1) f;

-- name: SearchScan :many
-- Parts newest first, for expressions. filler narrows by a text that every
-- match holds.
SELECT t.sid, t.seq, t.part, t.doc, t.kind, t.role, t.flags, t.epoch, t.tokens, t.length, t.tool, t.speaker, t.at, t.session_key, t.fits,
       (CASE WHEN t.fits THEN t.body ELSE '' END)::text AS body
FROM (
    SELECT p.sid, p.seq, p.part, p.doc, p.kind, p.role, p.flags, p.epoch, p.tokens, p.length, p.tool, p.speaker, p.at, p.body, s.session_key,
           coalesce(search_fits(p.sid, p.seq, p.kind, p.role, p.tool, p.epoch, p.at, p.flags, @kinds::smallint[], @roles::smallint[], @tool::text, @epoch::bigint, @since::timestamptz, @until::timestamptz, @hidden::integer, @sids::uuid[], @paths::text[])
           AND (@filler::text = '' OR strpos(p.body, @filler::text) > 0)
           AND NOT (p.kind = 4 AND EXISTS (SELECT FROM forgetting f WHERE f.tenant_id = @tenant_id AND f.sid = p.sid)), false)::boolean AS fits
    FROM (SELECT x.sid, x.seq, x.part, x.doc, x.kind, x.role, x.flags, x.epoch, x.tokens, x.length, x.tool, x.speaker, x.at, x.body FROM search_parts x
          WHERE x.tenant_id = @tenant_id AND x.doc < @before_doc::bigint AND x.doc <= @horizon::bigint
          ORDER BY x.doc DESC LIMIT @max_rows::integer) p
    JOIN sessions s ON s.tenant_id = @tenant_id AND s.sid = p.sid
) t
ORDER BY t.doc DESC;

-- name: SearchScanSessions :many
-- As SearchScan, of some sessions: within one, docs are in the order of seqs.
SELECT t.sid, t.seq, t.part, t.doc, t.kind, t.role, t.flags, t.epoch, t.tokens, t.length, t.tool, t.speaker, t.at, t.session_key, t.fits,
       (CASE WHEN t.fits THEN t.body ELSE '' END)::text AS body
FROM (
    SELECT p.sid, p.seq, p.part, p.doc, p.kind, p.role, p.flags, p.epoch, p.tokens, p.length, p.tool, p.speaker, p.at, p.body, s.session_key,
           coalesce(search_fits(p.sid, p.seq, p.kind, p.role, p.tool, p.epoch, p.at, p.flags, @kinds::smallint[], @roles::smallint[], @tool::text, @epoch::bigint, @since::timestamptz, @until::timestamptz, @hidden::integer, @sids::uuid[], @paths::text[])
           AND (@filler::text = '' OR strpos(p.body, @filler::text) > 0), false)::boolean AS fits
    FROM (SELECT y.sid, y.seq, y.part, y.doc, y.kind, y.role, y.flags, y.epoch, y.tokens, y.length, y.tool, y.speaker, y.at, y.body FROM unnest(@sids::uuid[]) AS u (sid)
          CROSS JOIN LATERAL (
              SELECT x.sid, x.seq, x.part, x.doc, x.kind, x.role, x.flags, x.epoch, x.tokens, x.length, x.tool, x.speaker, x.at, x.body FROM search_parts x
              WHERE x.tenant_id = @tenant_id AND x.sid = u.sid AND x.doc < @before_doc::bigint AND x.doc <= @horizon::bigint
              ORDER BY x.tenant_id DESC, x.sid DESC, x.seq DESC, x.part DESC LIMIT @max_rows::integer) y
          ORDER BY y.doc DESC LIMIT @max_rows::integer) p
    JOIN sessions s ON s.tenant_id = @tenant_id AND s.sid = p.sid
) t
ORDER BY t.doc DESC;

-- name: SearchPaths :many
-- The newest epoch step of sessions.
SELECT u.sid::uuid AS sid, coalesce(st.state, ''::bytea)::bytea AS state
FROM unnest(@sids::uuid[]) AS u (sid)
LEFT JOIN LATERAL (
    SELECT x.state FROM session_states x
    WHERE x.tenant_id = @tenant_id AND x.sid = u.sid ORDER BY x.as_of DESC LIMIT 1) st ON true;
