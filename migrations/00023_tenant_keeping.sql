-- What a tenant may spend on summaries in a day, over all summarizers, and how
-- many bytes of it are kept.

-- +goose Up
ALTER TABLE tenant_limits ADD COLUMN spend_micros bigint;
ALTER TABLE tenant_limits ADD COLUMN keep_bytes bigint;

-- Earlier versions kept errors in a provider's words here.
UPDATE summarizer_gates SET last_error = last_fault WHERE last_error IS NOT NULL;

-- +goose StatementBegin
-- kept_for_nobody tells that a session may be erased for its tenant's size:
-- nobody holds its lease, nothing was written to it for some seconds, nor to what
-- inherits from it.
CREATE FUNCTION kept_for_nobody(p_tenant text, p_sid uuid, p_floor double precision) RETURNS boolean
LANGUAGE sql STABLE AS $$
    WITH RECURSIVE heirs (sid) AS (
        SELECT p_sid
        UNION
        SELECT l.sid FROM heirs h JOIN lineage l ON l.tenant_id = p_tenant AND l.parent_sid = h.sid AND l.kind <> 2
    )
    SELECT NOT EXISTS (SELECT FROM leases l WHERE l.tenant_id = p_tenant AND l.sid = p_sid AND l.expires_at > now())
       AND NOT EXISTS (
        SELECT FROM heirs h JOIN sessions s ON s.tenant_id = p_tenant AND s.sid = h.sid
        WHERE s.updated_at >= now() - make_interval(secs => p_floor))
$$;
-- +goose StatementEnd
