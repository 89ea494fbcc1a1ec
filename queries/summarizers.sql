-- name: ReadGate :one
-- What stands for one summarizer now. All times are Postgres's.
SELECT coalesce(g.failures, 0)::integer AS failures, g.open_until, coalesce(g.last_fault, '')::text AS last_fault,
       coalesce(g.open_until > now(), false)::boolean AS shut,
       (g.open_until IS NOT NULL)::boolean AS opened,
       coalesce(s.cost_micros, 0)::bigint AS cost_micros, now()::timestamptz AS at,
       coalesce((SELECT sum(d.cost_micros) FROM summarizer_spend d
                 WHERE d.tenant_id = @tenant_id AND d.day = (now() AT TIME ZONE 'UTC')::date), 0)::bigint AS tenant_micros,
       l.spend_micros AS tenant_limit
FROM (SELECT 1) AS one
LEFT JOIN tenant_limits l ON l.tenant_id = @tenant_id
LEFT JOIN summarizer_gates g ON g.tenant_id = @tenant_id AND g.summarizer = @summarizer
LEFT JOIN summarizer_spend s ON s.tenant_id = @tenant_id AND s.summarizer = @summarizer
    AND s.day = (now() AT TIME ZONE 'UTC')::date;

-- name: TakeProbe :execrows
-- One of all workers asks a half-open summarizer. One that never came back loses
-- the probe after a while.
UPDATE summarizer_gates
SET probe_until = now() + make_interval(secs => @probe_seconds::double precision), updated_at = now()
WHERE tenant_id = @tenant_id AND summarizer = @summarizer
  AND open_until IS NOT NULL AND open_until <= now() AND (probe_until IS NULL OR probe_until <= now());

-- name: CloseGate :exec
UPDATE summarizer_gates
SET failures = 0, opened = 0, open_until = NULL, probe_until = NULL, updated_at = now()
WHERE tenant_id = @tenant_id AND summarizer = @summarizer AND (failures > 0 OR open_until IS NOT NULL);

-- name: EndProbe :exec
UPDATE summarizer_gates SET probe_until = NULL, updated_at = now()
WHERE tenant_id = @tenant_id AND summarizer = @summarizer AND probe_until IS NOT NULL;

-- name: OpenRow :exec
INSERT INTO summarizer_gates (tenant_id, summarizer) VALUES (@tenant_id, @summarizer) ON CONFLICT DO NOTHING;

-- name: LockGate :one
SELECT failures, opened, open_until, now()::timestamptz AS at FROM summarizer_gates
WHERE tenant_id = @tenant_id AND summarizer = @summarizer FOR UPDATE;

-- name: FailGate :exec
UPDATE summarizer_gates
SET failures = @failures, opened = @opened, open_until = @open_until, probe_until = NULL,
    last_fault = @last_fault, last_error = @last_error, failed_at = now(), updated_at = now()
WHERE tenant_id = @tenant_id AND summarizer = @summarizer;

-- name: AddSpend :exec
INSERT INTO summarizer_spend AS s (tenant_id, summarizer, day, calls, failed, input_tokens, output_tokens, cost_micros, took_millis)
VALUES (@tenant_id, @summarizer, (now() AT TIME ZONE 'UTC')::date, @calls, @failed, @input_tokens, @output_tokens, @cost_micros, @took_millis)
ON CONFLICT (tenant_id, summarizer, day) DO UPDATE
SET calls = s.calls + excluded.calls, failed = s.failed + excluded.failed,
    input_tokens = s.input_tokens + excluded.input_tokens, output_tokens = s.output_tokens + excluded.output_tokens,
    cost_micros = s.cost_micros + excluded.cost_micros, took_millis = s.took_millis + excluded.took_millis;

-- name: ListGates :many
-- Every summarizer that a tenant ever asked, with today's spend.
SELECT n.summarizer::text AS summarizer, coalesce(g.failures, 0)::integer AS failures, g.open_until, g.probe_until,
       coalesce(g.last_fault, '')::text AS last_fault, coalesce(g.last_error, '')::text AS last_error, g.failed_at,
       coalesce(g.open_until > now(), false)::boolean AS shut,
       coalesce(s.calls, 0)::bigint AS calls, coalesce(s.failed, 0)::bigint AS failed,
       coalesce(s.input_tokens, 0)::bigint AS input_tokens, coalesce(s.output_tokens, 0)::bigint AS output_tokens,
       coalesce(s.cost_micros, 0)::bigint AS cost_micros, coalesce(s.took_millis, 0)::bigint AS took_millis
FROM (SELECT x.summarizer FROM summarizer_gates x WHERE x.tenant_id = @tenant_id
      UNION SELECT y.summarizer FROM summarizer_spend y WHERE y.tenant_id = @tenant_id) AS n
LEFT JOIN summarizer_gates g ON g.tenant_id = @tenant_id AND g.summarizer = n.summarizer
LEFT JOIN summarizer_spend s ON s.tenant_id = @tenant_id AND s.summarizer = n.summarizer
    AND s.day = (now() AT TIME ZONE 'UTC')::date
ORDER BY n.summarizer;

-- name: GatesInUse :many
-- For metrics: what is not closed, and today's numbers, over all tenants.
SELECT s.summarizer, sum(s.calls)::bigint AS calls, sum(s.failed)::bigint AS failed, sum(s.input_tokens)::bigint AS input_tokens,
       sum(s.output_tokens)::bigint AS output_tokens, sum(s.cost_micros)::bigint AS cost_micros,
       (SELECT count(*) FROM summarizer_gates g WHERE g.summarizer = s.summarizer AND g.open_until IS NOT NULL)::bigint AS open
FROM summarizer_spend s
WHERE s.day = (now() AT TIME ZONE 'UTC')::date
GROUP BY s.summarizer ORDER BY s.summarizer;

-- name: SpentToday :one
-- What a tenant's summaries cost since midnight UTC, and the limit that was set
-- for it alone.
SELECT coalesce((SELECT sum(s.cost_micros) FROM summarizer_spend s
                 WHERE s.tenant_id = @tenant_id AND s.day = (now() AT TIME ZONE 'UTC')::date), 0)::bigint AS cost_micros,
       (SELECT l.spend_micros FROM tenant_limits l WHERE l.tenant_id = @tenant_id) AS spend_micros,
       now()::timestamptz AS at;

-- name: SpendersToday :many
-- What each tenant's summaries cost since midnight UTC, for operators and metrics.
SELECT s.tenant_id, sum(s.cost_micros)::bigint AS cost_micros, l.spend_micros
FROM summarizer_spend s LEFT JOIN tenant_limits l ON l.tenant_id = s.tenant_id
WHERE s.day = (now() AT TIME ZONE 'UTC')::date
GROUP BY s.tenant_id, l.spend_micros ORDER BY s.tenant_id;

-- name: OweRedo :exec
-- Due at once: the gates know whether there is anybody to ask.
INSERT INTO summary_redo (tenant_id, sid, next_attempt_at) VALUES (@tenant_id, @sid, now())
ON CONFLICT (tenant_id, sid) DO NOTHING;

-- name: PayRedo :exec
DELETE FROM summary_redo WHERE tenant_id = @tenant_id AND sid = @sid;

-- name: DueRedo :many
UPDATE summary_redo d
SET next_attempt_at = now() + make_interval(secs => @lease_seconds::double precision), attempts = d.attempts + 1
FROM (
    SELECT x.tenant_id, x.sid FROM summary_redo x
    WHERE x.next_attempt_at <= now()
    ORDER BY x.next_attempt_at LIMIT @max_rows::integer
    FOR UPDATE SKIP LOCKED
) due
WHERE d.tenant_id = due.tenant_id AND d.sid = due.sid
RETURNING d.tenant_id, d.sid, d.attempts;

-- name: PostponeRedo :exec
UPDATE summary_redo
SET next_attempt_at = now() + make_interval(secs => @delay_seconds::double precision), last_error = @last_error
WHERE tenant_id = @tenant_id AND sid = @sid;

-- name: CountRedo :one
SELECT count(*) AS owed FROM summary_redo;

-- name: WorthPreparing :many
-- Of these sessions those over the soft threshold that owe nothing yet. One
-- probe of the index each.
SELECT s.tenant_id, s.sid, s.epoch, s.tokens
FROM (SELECT DISTINCT unnest(@tenant_ids::text[]) AS tenant_id, unnest(@sids::uuid[]) AS sid) AS a
CROSS JOIN LATERAL (
    SELECT x.tenant_id, x.sid, x.epoch, ((x.leaf_offset - x.base_offset) * x.factor_milli / 1000)::bigint AS tokens
    FROM sessions x
    WHERE x.tenant_id = a.tenant_id AND x.sid = a.sid AND x.leaf_offset > x.hold_offset
      AND (x.leaf_offset - x.base_offset) * x.factor_milli
          > coalesce(nullif(x.token_budget, 0), @default_budget::bigint) * @soft_milli::bigint
      AND NOT EXISTS (SELECT FROM compaction_debt d WHERE d.tenant_id = x.tenant_id AND d.sid = x.sid)
    LIMIT 1
) AS s;
