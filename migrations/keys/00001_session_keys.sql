-- The keys of sessions, where they are kept in a database of their own.

-- +goose Up
-- +goose StatementBegin
-- A session's data key, encrypted by the master key of that id.
CREATE TABLE session_keys (
    tenant_id  text COLLATE "C" NOT NULL,
    sid        uuid        NOT NULL,
    master     text COLLATE "C" NOT NULL,
    wrapped    bytea       NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, sid)
);
-- +goose StatementEnd
