-- Retention goes by what hosts did: an erased ancestor is no use of its forks, and
-- a lease of a fork is one of what it was forked from.

-- +goose Up
-- Tombstones stay for good; what is asked of them for each erasure is about the few
-- that are not empty.
CREATE INDEX tombstones_not_empty ON tombstones (tenant_id, sid) WHERE emptied_at IS NULL;

-- +goose StatementBegin
-- kept_for_nobody tells that a session may be erased for its tenant's size: of it
-- and of all that inherits from it nobody holds a lease, and nothing was written to
-- any for some seconds.
CREATE OR REPLACE FUNCTION kept_for_nobody(p_tenant text, p_sid uuid, p_floor double precision) RETURNS boolean
LANGUAGE sql STABLE AS $$
    WITH RECURSIVE heirs (sid) AS (
        SELECT p_sid
        UNION
        SELECT l.sid FROM heirs h JOIN lineage l ON l.tenant_id = p_tenant AND l.parent_sid = h.sid AND l.kind <> 2
    )
    SELECT NOT EXISTS (
        SELECT FROM heirs h JOIN leases l ON l.tenant_id = p_tenant AND l.sid = h.sid
        WHERE l.expires_at > now())
       AND NOT EXISTS (
        SELECT FROM heirs h JOIN sessions s ON s.tenant_id = p_tenant AND s.sid = h.sid
        WHERE s.updated_at >= now() - make_interval(secs => p_floor))
$$;
-- +goose StatementEnd

-- +goose StatementBegin
-- stay_idle gives a session the time of its newest write back, after the engine
-- wrote to it for reasons of its own.
CREATE FUNCTION stay_idle(p_tenant text, p_sid uuid, p_at timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE sessions SET updated_at = p_at WHERE tenant_id = p_tenant AND sid = p_sid;
END
$$;
-- +goose StatementEnd
