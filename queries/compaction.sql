-- name: DueDebt :many
-- Takes due rows for a while, so that several sweepers do not repeat each other.
UPDATE compaction_debt d
SET next_attempt_at = now() + make_interval(secs => @lease_seconds::double precision), attempts = d.attempts + 1
FROM (
    SELECT x.tenant_id, x.sid FROM compaction_debt x
    WHERE x.next_attempt_at <= now()
    ORDER BY x.next_attempt_at LIMIT @max_rows::integer
    FOR UPDATE SKIP LOCKED
) due
WHERE d.tenant_id = due.tenant_id AND d.sid = due.sid
RETURNING d.tenant_id, d.sid, d.epoch, d.attempts;

-- name: DebtOf :one
SELECT * FROM compaction_debt WHERE tenant_id = @tenant_id AND sid = @sid;

-- name: PostponeDebt :exec
UPDATE compaction_debt
SET next_attempt_at = now() + make_interval(secs => @delay_seconds::double precision), last_error = @last_error,
    failures = failures + 1
WHERE tenant_id = @tenant_id AND sid = @sid;

-- name: PayDebt :exec
DELETE FROM compaction_debt WHERE tenant_id = @tenant_id AND sid = @sid;

-- name: CarryDebt :exec
-- What a session still owes behind the step that paid for the rest.
UPDATE compaction_debt
SET epoch = @epoch, tokens = @tokens, attempts = 0, failures = 0, last_error = NULL, next_attempt_at = now()
WHERE tenant_id = @tenant_id AND sid = @sid;

-- name: SettleDebt :exec
-- Ends a debt unless turns have added to it since it was read.
DELETE FROM compaction_debt WHERE tenant_id = @tenant_id AND sid = @sid AND tokens = @tokens;

-- name: CountDebt :one
SELECT count(*) AS owed, coalesce(extract(epoch FROM now() - min(created_at)), 0)::double precision AS oldest_seconds
FROM compaction_debt;

-- name: RecordAttempt :exec
-- The newest hundred of a session are kept.
WITH old AS (
    DELETE FROM compaction_attempts a
    WHERE a.tenant_id = @tenant_id AND a.sid = @sid AND a.id <= (
        SELECT o.id FROM compaction_attempts o WHERE o.tenant_id = @tenant_id AND o.sid = @sid
        ORDER BY o.id DESC OFFSET 99 LIMIT 1
    )
)
INSERT INTO compaction_attempts (tenant_id, sid, epoch, worker, outcome, error, started_at)
SELECT s.tenant_id, s.sid, @epoch, @worker, @outcome, @error, @started_at
FROM sessions s WHERE s.tenant_id = @tenant_id AND s.sid = @sid FOR KEY SHARE;

-- name: ListAttempts :many
SELECT * FROM compaction_attempts WHERE tenant_id = @tenant_id AND sid = @sid
ORDER BY id DESC LIMIT @max_rows::integer;

-- name: GetDraft :one
SELECT draft FROM drafts WHERE tenant_id = @tenant_id AND sid = @sid AND key = @key;

-- name: PutDraft :exec
-- The row lock makes an erasure wait for this, or this find nothing: a mere
-- look would leave a draft behind that was being written meanwhile. What is not
-- encrypted as its session is, as on a node without keys, is not kept.
INSERT INTO drafts (tenant_id, sid, key, draft)
SELECT s.tenant_id, s.sid, @key, @draft
FROM sessions s WHERE s.tenant_id = @tenant_id AND s.sid = @sid AND s.sealed = @sealed::boolean FOR KEY SHARE
ON CONFLICT (tenant_id, sid, key) DO NOTHING;

-- name: DropDrafts :exec
DELETE FROM drafts WHERE tenant_id = @tenant_id AND sid = @sid;

-- name: RecordAnswers :exec
-- Locks as PutDraft does, in the order of the sessions' ids, and holds each to its
-- session as that does. What was never said has nothing to encrypt.
INSERT INTO window_answers (tenant_id, sid, head, epoch, params, fingerprint, tokens, answered_at)
SELECT a.tenant_id, a.sid, a.head, a.epoch, a.params, a.fingerprint, a.tokens, a.answered_at
FROM (
    SELECT unnest(@tenant_ids::text[]) AS tenant_id, unnest(@sids::uuid[]) AS sid, unnest(@heads::bigint[]) AS head,
           unnest(@epochs::bigint[]) AS epoch, unnest(@params::bytea[]) AS params, unnest(@fingerprints::text[]) AS fingerprint,
           unnest(@tokens::integer[]) AS tokens, unnest(@answered_at::timestamptz[]) AS answered_at,
           unnest(@sealed::boolean[]) AS sealed
    ORDER BY 1, 2) a
CROSS JOIN LATERAL (
    SELECT FROM sessions s
    WHERE s.tenant_id = a.tenant_id AND s.sid = a.sid AND (s.sealed = a.sealed OR a.head = 0) LIMIT 1 FOR KEY SHARE) s;

-- name: AnswersAt :many
-- The newest answers that were given at a head. It reads the session's answers
-- from the newest back: a look into the past, not part of a turn.
SELECT params, fingerprint, epoch FROM window_answers
WHERE tenant_id = @tenant_id AND sid = @sid AND head = @head
ORDER BY id DESC LIMIT @max_rows;
