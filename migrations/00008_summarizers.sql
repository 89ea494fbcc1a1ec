-- What all workers share about summarizers: who may be asked, what was spent,
-- which questions wait for a host's own model, and which summaries are to be
-- written anew.

-- +goose Up
-- +goose StatementBegin
-- Failed tries at paying a debt, beside the times it was sent.
ALTER TABLE compaction_debt ADD COLUMN failures integer NOT NULL DEFAULT 0;

-- The circuit breaker of a summarizer, per tenant. A row without open_until is
-- closed. After open_until it is half open: who sets probe_until may ask once.
CREATE TABLE summarizer_gates (
    tenant_id   text COLLATE "C" NOT NULL,
    summarizer  text COLLATE "C" NOT NULL,
    -- Failures of the provider in a row.
    failures    integer     NOT NULL DEFAULT 0,
    -- How often it opened in a row; the pause grows with it.
    opened      integer     NOT NULL DEFAULT 0,
    open_until  timestamptz,
    probe_until timestamptz,
    last_fault  text,
    last_error  text,
    failed_at   timestamptz,
    updated_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, summarizer)
) WITH (fillfactor = 70);

-- What a summarizer was asked and what it cost, by day in UTC.
CREATE TABLE summarizer_spend (
    tenant_id     text COLLATE "C" NOT NULL,
    summarizer    text COLLATE "C" NOT NULL,
    day           date   NOT NULL,
    calls         bigint NOT NULL DEFAULT 0,
    failed        bigint NOT NULL DEFAULT 0,
    input_tokens  bigint NOT NULL DEFAULT 0,
    output_tokens bigint NOT NULL DEFAULT 0,
    cost_micros   bigint NOT NULL DEFAULT 0,
    took_millis   bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, summarizer, day)
) WITH (fillfactor = 70);

-- Questions for a host's own model. A gateway leases and answers them. A row
-- goes when its answer was taken, or with its session.
CREATE TABLE summarization_jobs (
    tenant_id     text COLLATE "C" NOT NULL,
    id            uuid        NOT NULL,
    sid           uuid        NOT NULL,
    -- The hash of the question: who asks it again finds the same job.
    key           bytea       NOT NULL,
    summarizer    text        NOT NULL,
    model         text        NOT NULL,
    system        text        NOT NULL,
    prompt        text        NOT NULL,
    max_tokens    integer     NOT NULL,
    state         text        NOT NULL DEFAULT 'waiting',
    owner         text,
    leases        integer     NOT NULL DEFAULT 0,
    lease_until   timestamptz,
    -- Not leased before this: the next summarizer is asked instead.
    lease_by      timestamptz NOT NULL,
    deadline      timestamptz NOT NULL,
    answer        text,
    finish        text,
    answer_model  text,
    input_tokens  bigint      NOT NULL DEFAULT 0,
    output_tokens bigint      NOT NULL DEFAULT 0,
    error         text,
    created_at    timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, sid, key)
);
CREATE INDEX summarization_jobs_open ON summarization_jobs (tenant_id, created_at) WHERE state IN ('waiting', 'leased');
CREATE INDEX summarization_jobs_old ON summarization_jobs (deadline);

-- Sessions with a live summary that a rule wrote in a model's place.
CREATE TABLE summary_redo (
    tenant_id       text COLLATE "C" NOT NULL,
    sid             uuid        NOT NULL,
    attempts        integer     NOT NULL DEFAULT 0,
    last_error      text,
    next_attempt_at timestamptz NOT NULL DEFAULT now() + interval '30 seconds',
    created_at      timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, sid)
);
CREATE INDEX summary_redo_due ON summary_redo (next_attempt_at);
-- +goose StatementEnd
