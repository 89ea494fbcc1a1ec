-- name: SessionsAfter :many
-- All sessions of all tenants, in the order of their ids.
SELECT tenant_id, sid, session_key FROM sessions
WHERE (tenant_id, sid) > (@after_tenant::text, @after_sid::uuid)
ORDER BY tenant_id, sid LIMIT @max_rows::integer;

-- name: LogAfter :many
-- Events as they are stored, bounded in bytes as in EventsAfter.
SELECT p.seq, p.type, p.parent_seq, p.epoch, p.payload_hash, p.whole::bytea AS body, p.found::boolean AS found, p.intact::boolean AS intact,
       p.reader_version, p.role, p.tokens, p.flags, p.links, p.offset_tokens
FROM (
    SELECT e.*, coalesce(b.body, e.body) AS whole, (e.body_ref IS NULL OR b.body IS NOT NULL) AS found,
           (e.body_ref IS NULL OR e.body_ref = sha256(coalesce(b.body, ''))) AS intact,
           sum(coalesce(octet_length(b.body), octet_length(e.body), 0)::bigint) OVER (
               ORDER BY e.seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes_before
    FROM (
        SELECT * FROM events x
        WHERE x.tenant_id = @tenant_id AND x.sid = @sid AND x.seq > @after::bigint
        ORDER BY x.seq LIMIT @max_rows::integer) e
    LEFT JOIN LATERAL (
        SELECT x.body FROM bodies x
        WHERE x.tenant_id = e.tenant_id AND x.sid = e.sid AND x.hash = e.body_ref LIMIT 1) b ON true
) p
WHERE coalesce(p.bytes_before, 0) < @max_bytes::bigint
ORDER BY p.seq;

-- name: BadKeys :many
-- Keys that name no event, or one with another payload. A host entry may name
-- an event that came in another form, or, below zero, one that an ancestor has.
SELECT k.kind, k.seq, (e.seq IS NOT NULL)::boolean AS found
FROM event_keys k
LEFT JOIN events e ON e.tenant_id = k.tenant_id AND e.sid = k.sid AND e.seq = k.seq
WHERE k.tenant_id = @tenant_id AND k.sid = @sid
  AND (e.seq IS NULL AND NOT (k.kind = 2 AND k.seq < 0) OR k.kind <> 2 AND k.payload_hash <> e.payload_hash)
ORDER BY k.seq LIMIT @max_rows::integer;

-- name: TurnsWithoutKey :many
-- Committed turns that a retry would store again.
SELECT e.seq FROM events e
WHERE e.tenant_id = @tenant_id AND e.sid = @sid AND e.type = 2
  AND NOT EXISTS (SELECT FROM event_keys k WHERE k.tenant_id = e.tenant_id AND k.sid = e.sid AND k.kind = 3 AND k.seq = e.seq)
ORDER BY e.seq LIMIT @max_rows::integer;

-- name: StrayDebts :many
SELECT d.tenant_id, d.sid FROM compaction_debt d
WHERE NOT EXISTS (SELECT FROM sessions s WHERE s.tenant_id = d.tenant_id AND s.sid = d.sid)
ORDER BY d.tenant_id, d.sid LIMIT @max_rows::integer;
