-- name: SessionsOfKey :many
-- The sessions that have a key, of every tenant.
SELECT tenant_id, sid, session_key FROM sessions WHERE session_key = @session_key ORDER BY tenant_id;

-- name: RewriteFacts :execrows
-- What is derived of events, never their bytes. Whatever the plan, no more of the
-- session is read than lies between the first and the last.
UPDATE events e
SET epoch = u.epoch, reader_version = u.version, role = u.role, tokens = u.tokens, flags = u.flags, links = u.links, offset_tokens = u.total
FROM (SELECT unnest(@seqs::bigint[]) AS seq, unnest(@epochs::bigint[]) AS epoch, unnest(@versions::smallint[]) AS version,
             unnest(@roles::smallint[]) AS role, unnest(@tokens::integer[]) AS tokens, unnest(@flags::integer[]) AS flags,
             unnest(@links::bytea[]) AS links, unnest(@totals::bigint[]) AS total) u
WHERE e.tenant_id = @tenant_id AND e.sid = @sid AND e.seq = u.seq
  AND e.seq >= (SELECT min(x) FROM unnest(@seqs::bigint[]) AS x) AND e.seq <= (SELECT max(x) FROM unnest(@seqs::bigint[]) AS x);

-- name: ReplaceState :exec
INSERT INTO session_states (tenant_id, sid, as_of, epoch, state)
VALUES (@tenant_id, @sid, @as_of, @epoch, @state)
ON CONFLICT (tenant_id, sid, as_of) DO UPDATE SET epoch = excluded.epoch, state = excluded.state;

-- name: DropState :exec
DELETE FROM session_states WHERE tenant_id = @tenant_id AND sid = @sid AND as_of = @as_of;

-- name: RewriteSession :exec
UPDATE sessions
SET head = @head, host_head = @host_head, epoch = @epoch, leaf_seq = @leaf_seq, leaf_offset = @leaf_offset,
    base_offset = @base_offset, factor_milli = @factor_milli, dialect = @dialect
WHERE tenant_id = @tenant_id AND sid = @sid;

-- name: KeysAmiss :many
-- Keys that name no event, or one with another payload, and the one event that
-- has the key's own payload, if just one has it.
SELECT k.kind, k.key, k.seq, k.payload_hash, (e.seq IS NOT NULL)::boolean AS found,
       coalesce(e.payload_hash, ''::bytea)::bytea AS event_hash, coalesce(o.seq, 0)::bigint AS only_seq
FROM event_keys k
LEFT JOIN events e ON e.tenant_id = k.tenant_id AND e.sid = k.sid AND e.seq = k.seq
LEFT JOIN LATERAL (
    SELECT max(x.seq) AS seq FROM events x
    WHERE x.tenant_id = k.tenant_id AND x.sid = k.sid AND x.payload_hash = k.payload_hash
    HAVING count(*) = 1) o ON true
WHERE k.tenant_id = @tenant_id AND k.sid = @sid
  AND (e.seq IS NULL OR k.kind <> 2 AND k.payload_hash <> e.payload_hash)
ORDER BY k.seq, k.kind, k.key LIMIT @max_rows::integer;

-- name: KeylessTurns :many
-- Committed turns that no key names.
SELECT e.seq, e.payload_hash, coalesce(b.body, e.body)::bytea AS body FROM events e
LEFT JOIN bodies b ON b.tenant_id = e.tenant_id AND b.sid = e.sid AND b.hash = e.body_ref
WHERE e.tenant_id = @tenant_id AND e.sid = @sid AND e.type = 2 AND e.type <> 1
  AND NOT EXISTS (SELECT FROM event_keys k WHERE k.tenant_id = e.tenant_id AND k.sid = e.sid AND k.kind = 3 AND k.seq = e.seq)
ORDER BY e.seq LIMIT @max_rows::integer;

-- name: RewriteKey :exec
UPDATE event_keys SET seq = @seq, payload_hash = @payload_hash
WHERE tenant_id = @tenant_id AND sid = @sid AND kind = @kind AND key = @key;

-- name: PutDebt :exec
INSERT INTO compaction_debt (tenant_id, sid, epoch, tokens, budget)
VALUES (@tenant_id, @sid, @epoch, @tokens, @budget)
ON CONFLICT (tenant_id, sid) DO UPDATE SET epoch = excluded.epoch, tokens = excluded.tokens, budget = excluded.budget;

-- name: DropStrayDebts :execrows
DELETE FROM compaction_debt d
WHERE NOT EXISTS (SELECT FROM sessions s WHERE s.tenant_id = d.tenant_id AND s.sid = d.sid);

-- name: CallDebts :execrows
-- Makes what is owed due at once: the next sweep publishes it.
UPDATE compaction_debt SET next_attempt_at = now() WHERE next_attempt_at > now();

-- name: CallRedos :execrows
UPDATE summary_redo SET next_attempt_at = now() WHERE next_attempt_at > now();
