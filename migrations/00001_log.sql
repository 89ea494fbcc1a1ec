-- The log and what is primary beside it. Every key starts with the tenant.

-- +goose Up
-- +goose StatementBegin
CREATE TABLE sessions (
    tenant_id       text COLLATE "C" NOT NULL,
    sid             uuid        NOT NULL,
    session_key     text COLLATE "C" NOT NULL,
    head            bigint      NOT NULL,
    -- The highest seq written by a call of a host; expectedHead is held against it.
    host_head       bigint      NOT NULL,
    epoch           bigint      NOT NULL,
    -- The newest message of the active path and the running token total there.
    leaf_seq        bigint      NOT NULL,
    leaf_offset     bigint      NOT NULL,
    -- leaf_offset - base_offset is what the window costs when nothing is trimmed.
    base_offset     bigint      NOT NULL DEFAULT 0,
    -- No automatic compaction before leaf_offset passes this (set by an undo).
    hold_offset     bigint      NOT NULL DEFAULT 0,
    factor_milli    integer     NOT NULL DEFAULT 1000,
    token_budget    bigint      NOT NULL DEFAULT 0,
    dialect         smallint    NOT NULL DEFAULT 0,
    gateway         text COLLATE "C",
    host_session_id text COLLATE "C",
    created_at      timestamptz NOT NULL DEFAULT now(),
    updated_at      timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, sid)
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX sessions_by_key ON sessions (tenant_id, session_key);

CREATE TABLE events (
    tenant_id       text COLLATE "C" NOT NULL,
    sid             uuid        NOT NULL,
    seq             bigint      NOT NULL,
    position        bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
    xid             xid8        NOT NULL DEFAULT pg_current_xact_id(),
    type            smallint    NOT NULL,
    parent_seq      bigint      NOT NULL,
    epoch           bigint      NOT NULL,
    gateway         text COLLATE "C",
    host_session_id text COLLATE "C",
    payload_hash    bytea       NOT NULL,
    -- The host's bytes. Empty when they are in bodies, under payload_hash's row.
    body            bytea       NOT NULL,
    body_ref        bytea,
    recorded_at     timestamptz NOT NULL DEFAULT now(),
    -- Derived from the body; rebuilt when the reader changes.
    reader_version  smallint    NOT NULL DEFAULT 0,
    role            smallint    NOT NULL DEFAULT 0,
    tokens          integer     NOT NULL DEFAULT 0,
    flags           integer     NOT NULL DEFAULT 0,
    links           bytea,
    offset_tokens   bigint      NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, sid, seq)
);
-- The gap-safe feed: (xid, position) below the oldest running writer.
CREATE INDEX events_feed ON events (tenant_id, xid, position);
-- Everything but messages is rare: the relay, summaries and state read it.
CREATE INDEX events_not_messages ON events (tenant_id, sid, type, seq) WHERE type <> 1;
CREATE INDEX events_notices ON events (xid, position) WHERE type IN (3, 6, 7, 9);

-- Bodies over 256 KiB, whole, once per session however often they were sent.
CREATE TABLE bodies (
    tenant_id text COLLATE "C" NOT NULL,
    sid       uuid  NOT NULL,
    hash      bytea NOT NULL,
    body      bytea NOT NULL,
    PRIMARY KEY (tenant_id, sid, hash)
);

-- All that identifies an event: client keys, host entries, advancement keys.
CREATE TABLE event_keys (
    tenant_id    text COLLATE "C" NOT NULL,
    sid          uuid     NOT NULL,
    kind         smallint NOT NULL,
    key          bytea    NOT NULL,
    seq          bigint   NOT NULL,
    payload_hash bytea    NOT NULL,
    PRIMARY KEY (tenant_id, sid, kind, key)
);

-- The state of a session at each epoch step: path, floor, live summaries.
CREATE TABLE session_states (
    tenant_id text COLLATE "C" NOT NULL,
    sid       uuid   NOT NULL,
    as_of     bigint NOT NULL,
    epoch     bigint NOT NULL,
    state     bytea  NOT NULL,
    PRIMARY KEY (tenant_id, sid, as_of)
);

CREATE TABLE tombstones (
    tenant_id     text COLLATE "C" NOT NULL,
    session_key   text COLLATE "C" NOT NULL,
    sid           uuid        NOT NULL,
    -- sha256 of every host session id the erased session knew.
    host_sessions bytea[]     NOT NULL,
    erased_at     timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, session_key, sid)
);

CREATE TABLE leases (
    tenant_id  text COLLATE "C" NOT NULL,
    sid        uuid        NOT NULL,
    owner      text        NOT NULL,
    token      text        NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, sid)
);

-- What a session owes. Written with the append that crossed the threshold,
-- deleted by the commit of the compaction.
CREATE TABLE compaction_debt (
    tenant_id       text COLLATE "C" NOT NULL,
    sid             uuid        NOT NULL,
    epoch           bigint      NOT NULL,
    tokens          bigint      NOT NULL,
    budget          bigint      NOT NULL,
    attempts        integer     NOT NULL DEFAULT 0,
    last_error      text,
    -- The node that wrote the debt publishes it at once; the sweep comes later.
    next_attempt_at timestamptz NOT NULL DEFAULT now() + interval '3 seconds',
    created_at      timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, sid)
);
CREATE INDEX compaction_debt_due ON compaction_debt (next_attempt_at);

-- Every finished try at a compaction, dead letters of the bus included.
CREATE TABLE compaction_attempts (
    tenant_id  text COLLATE "C" NOT NULL,
    sid        uuid        NOT NULL,
    id         bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
    epoch      bigint      NOT NULL,
    worker     text        NOT NULL,
    outcome    text        NOT NULL,
    error      text,
    started_at timestamptz NOT NULL,
    ended_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, sid, id)
);

-- Finished summaries of work that is not committed yet, by the hash of the
-- whole rendered request.
CREATE TABLE drafts (
    tenant_id  text COLLATE "C" NOT NULL,
    sid        uuid        NOT NULL,
    key        bytea       NOT NULL,
    draft      bytea       NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, sid, key)
);

-- What was asked and answered: enough to rebuild the window a model saw.
CREATE TABLE window_answers (
    tenant_id   text COLLATE "C" NOT NULL,
    sid         uuid        NOT NULL,
    id          bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
    head        bigint      NOT NULL,
    epoch       bigint      NOT NULL,
    params      bytea       NOT NULL,
    fingerprint text        NOT NULL,
    tokens      integer     NOT NULL,
    answered_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, sid, id)
);

-- How far each reader of the gap-safe feed has come.
CREATE TABLE checkpoints (
    name       text PRIMARY KEY,
    xid        xid8        NOT NULL,
    position   bigint      NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now()
);
-- +goose StatementEnd
