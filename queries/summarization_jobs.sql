-- name: AskJob :one
-- Puts a question, or finds it: the same question of a session has one job. One
-- that failed waits again. It leaves nothing behind for a session that is gone, or
-- that is encrypted where the question is not.
INSERT INTO summarization_jobs AS j (tenant_id, id, sid, key, summarizer, model, system, prompt, max_tokens, lease_by, deadline)
SELECT @tenant_id, @id, @sid, @key, @summarizer, @model, @system, @prompt, @max_tokens,
       now() + make_interval(secs => @lease_seconds::double precision), now() + make_interval(secs => @deadline_seconds::double precision)
FROM sessions s WHERE s.tenant_id = @tenant_id AND s.sid = @sid AND s.sealed = @sealed::boolean
FOR KEY SHARE
ON CONFLICT (tenant_id, sid, key) DO UPDATE
SET state = CASE WHEN j.state = 'failed' THEN 'waiting' ELSE j.state END,
    error = CASE WHEN j.state = 'failed' THEN NULL ELSE j.error END,
    lease_by = excluded.lease_by, deadline = excluded.deadline
RETURNING j.id;

-- name: LeaseJob :one
-- The oldest question that nobody works on, for one gateway and for a while.
UPDATE summarization_jobs j
SET state = 'leased', owner = @owner, leases = j.leases + 1,
    lease_until = least(j.deadline, now() + make_interval(secs => @lease_seconds::double precision))
FROM (
    SELECT x.tenant_id, x.id FROM summarization_jobs x
    WHERE x.tenant_id = @tenant_id AND x.state IN ('waiting', 'leased') AND x.deadline > now()
      AND (x.state = 'waiting' OR x.lease_until <= now())
      AND (x.model = '' OR cardinality(@models::text[]) = 0 OR x.model = ANY (@models::text[]))
    ORDER BY x.created_at LIMIT 1
    FOR UPDATE SKIP LOCKED
) due
WHERE j.tenant_id = due.tenant_id AND j.id = due.id
RETURNING j.id, j.sid, j.key, j.model, j.system, j.prompt, j.max_tokens, j.lease_until,
    (SELECT s.session_key FROM sessions s WHERE s.tenant_id = j.tenant_id AND s.sid = j.sid) AS session_key;

-- name: AnswerJob :execrows
-- The first answer counts, even one that comes after its lease. One that is not
-- encrypted as its session is, is none.
UPDATE summarization_jobs j
SET state = 'answered', answer = @answer, finish = @finish, answer_model = @answer_model,
    input_tokens = @input_tokens, output_tokens = @output_tokens
WHERE j.tenant_id = @tenant_id AND j.id = @id AND j.state IN ('waiting', 'leased')
  AND EXISTS (SELECT FROM sessions s WHERE s.tenant_id = j.tenant_id AND s.sid = j.sid AND s.sealed = @sealed::boolean);

-- name: FailJob :execrows
-- Held to the session as AnswerJob is.
UPDATE summarization_jobs j SET state = 'failed', error = @error
WHERE j.tenant_id = @tenant_id AND j.id = @id AND j.state IN ('waiting', 'leased')
  AND EXISTS (SELECT FROM sessions s WHERE s.tenant_id = j.tenant_id AND s.sid = j.sid AND s.sealed = @sealed::boolean);

-- name: JobState :one
-- Whether a question can still be answered, and whether its session is encrypted.
SELECT (j.state IN ('waiting', 'leased'))::boolean AS open,
       EXISTS (SELECT FROM sessions s WHERE s.tenant_id = j.tenant_id AND s.sid = j.sid AND s.sealed)::boolean AS sealed
FROM summarization_jobs j WHERE j.tenant_id = @tenant_id AND j.id = @id;

-- name: ReadJob :one
SELECT sid, key, state, answer, finish, answer_model, input_tokens, output_tokens, error,
       (state = 'waiting' AND lease_by <= now()
        OR state = 'leased' AND lease_until + (lease_by - created_at) <= now())::boolean AS unclaimed
FROM summarization_jobs WHERE tenant_id = @tenant_id AND id = @id;

-- name: DropJob :exec
DELETE FROM summarization_jobs WHERE tenant_id = @tenant_id AND id = @id;

-- name: DropOldJobs :exec
-- Questions that nobody came back for.
DELETE FROM summarization_jobs WHERE deadline < now() - interval '1 day';

