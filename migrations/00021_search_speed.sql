-- Search: the rank reads no more terms than it has to.

-- +goose Up
-- +goose StatementBegin
-- Messages that have every entry of query: in one part, or over several parts
-- of which one has the rarest entry; best first, from (before_score, before_doc)
-- on. IS NOT DISTINCT FROM and + 0 keep the planner from any index but that of
-- the terms. Weights are how much a count tells (BM25, k1 1.2).
--
-- To rank a part its terms are read, which costs more than all else. best is the
-- most that a rank can come to before the length divides it, 0 where that is not
-- known. With it the shortest parts are ranked first, and then those alone that
-- are not too long to come before the last of the best of these.
CREATE FUNCTION search_all(
    tenant text, query text, ranked text, rarest text, queries text[], average double precision, best double precision,
    horizon bigint, before_score double precision, before_doc bigint, most integer, max_rows integer,
    kinds smallint[], roles smallint[], a_tool text, a_epoch bigint, since timestamptz, until timestamptz, hidden integer, sids uuid[], paths text[]
) RETURNS TABLE (sid uuid, seq bigint, doc bigint, score double precision) LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE
    weights CONSTANT real[] := '{0.455,0.625,0.745,0.833}';
    seeds CONSTANT integer := max_rows + max_rows / 4;
BEGIN
    RETURN QUERY
    WITH candidate AS MATERIALIZED (
        SELECT p.ctid AS place, p.sid, p.seq, p.doc, 0.3::double precision + 0.7::double precision * p.length / average AS damp
        FROM search_parts p
        WHERE p.terms @@ query::tsquery AND p.tenant_id IS NOT DISTINCT FROM tenant AND p.doc + 0 <= horizon
          AND search_fits(p.sid, p.seq, p.kind, p.role, p.tool, p.epoch, p.at, p.flags, kinds, roles, a_tool, a_epoch, since, until, hidden, sids, paths)
        ORDER BY p.doc DESC LIMIT most
    ), seed AS (
        SELECT c.* FROM candidate c
        WHERE best > 0 AND (SELECT count(*) FROM candidate) > 2 * seeds
        ORDER BY c.damp LIMIT seeds
    ), least AS MATERIALIZED (
        SELECT m.score FROM (
            SELECT max(ts_rank(weights, x.terms, ranked::tsquery) / c.damp) AS score
            FROM seed c JOIN search_parts x ON x.ctid = c.place
            GROUP BY c.sid, c.seq) m
        ORDER BY m.score DESC OFFSET max_rows - 1 LIMIT 1
    ), found AS (
        SELECT c.sid, c.seq, c.doc, ts_rank(weights, x.terms, ranked::tsquery) / c.damp AS score
        FROM candidate c JOIN search_parts x ON x.ctid = c.place
        WHERE c.damp <= coalesce((SELECT best / nullif(least.score, 0) FROM least), 'infinity')
    ), spread AS (
        SELECT p.sid, p.seq, p.doc, 0::double precision AS score
        FROM search_parts p
        WHERE rarest <> '' AND p.terms @@ rarest::tsquery AND p.tenant_id IS NOT DISTINCT FROM tenant AND p.doc + 0 <= horizon
          AND search_fits(p.sid, p.seq, p.kind, p.role, p.tool, p.epoch, p.at, p.flags, kinds, roles, a_tool, a_epoch, since, until, hidden, sids, paths)
          AND NOT EXISTS (
            SELECT FROM unnest(queries) AS q (query)
            WHERE NOT EXISTS (
                SELECT FROM search_parts x
                WHERE x.tenant_id = p.tenant_id AND x.sid = p.sid AND x.seq = p.seq AND x.terms @@ q.query::tsquery))
        ORDER BY p.doc DESC LIMIT most
    ), message AS (
        SELECT f.sid, f.seq, max(f.doc) AS doc, max(f.score) AS score
        FROM (SELECT found.sid, found.seq, found.doc, found.score FROM found UNION ALL SELECT spread.sid, spread.seq, spread.doc, spread.score FROM spread) f
        GROUP BY f.sid, f.seq
    )
    SELECT m.sid, m.seq, m.doc, m.score FROM message m
    WHERE (m.score, m.doc) < (before_score, before_doc)
    ORDER BY m.score DESC, m.doc DESC LIMIT max_rows;
END
$$;
-- +goose StatementEnd
