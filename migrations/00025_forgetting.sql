-- Who has yet to forget an erased ancestor. An erasure hides the session and says
-- here, in the same transaction, who inherited of it; each heir then forgets in a
-- transaction of its own, whoever comes first: the erasure, a sweep, or a reader.

-- +goose Up
CREATE TABLE forgetting (
    tenant_id text COLLATE "C" NOT NULL,
    -- The heir, and the erased session.
    sid       uuid NOT NULL,
    ancestor  uuid NOT NULL,
    PRIMARY KEY (tenant_id, sid, ancestor)
);
CREATE INDEX forgetting_of ON forgetting (tenant_id, ancestor, sid);

-- What is done for several sessions in one statement is done row by row: joined
-- with an array, the planner may read all of a tenant instead of probing its index.

-- +goose StatementBegin
-- rewrite_event replaces the body of an event that the engine wrote.
CREATE FUNCTION rewrite_event(p_tenant text, p_sid uuid, p_seq bigint, p_body bytea) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE events SET body = p_body, body_ref = NULL
    WHERE tenant_id = p_tenant AND sid = p_sid AND seq = p_seq AND type <> 1;
END
$$;
-- +goose StatementEnd

-- +goose StatementBegin
-- step_epoch steps a session's epoch if it still is the one given.
CREATE FUNCTION step_epoch(p_tenant text, p_sid uuid, p_epoch bigint, p_base bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE sessions SET epoch = epoch + 1, base_offset = p_base, updated_at = now()
    WHERE tenant_id = p_tenant AND sid = p_sid AND epoch = p_epoch;
    RETURN FOUND;
END
$$;
-- +goose StatementEnd

SELECT secure_tables();
