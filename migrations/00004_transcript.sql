-- How far each host transcript was read, and where an event's host entry is.

-- +goose Up
-- +goose StatementBegin
-- A lane is one transcript of a host: (gateway, host session id) under a
-- session. Without its row the host starts over, and finds everything known.
CREATE TABLE transcript_lanes (
    tenant_id       text COLLATE "C" NOT NULL,
    sid             uuid        NOT NULL,
    gateway         text COLLATE "C" NOT NULL,
    host_session_id text COLLATE "C" NOT NULL,
    -- The host's own bookmark, opaque; null before the first.
    cursor          bytea,
    -- The host's lifecycle revision as last heard, empty when never.
    revision        text        NOT NULL DEFAULT '',
    position        bytea       NOT NULL DEFAULT '',
    updated_at      timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, sid, gateway, host_session_id)
);
-- +goose StatementEnd
-- +goose StatementBegin
-- Which messages a transcript has named: kind 2 is a host entry. Only
-- transcripts write such keys, so other appends do not pay for the index.
CREATE INDEX event_keys_of_entries ON event_keys (tenant_id, sid, seq) WHERE kind = 2;
-- +goose StatementEnd
