-- Search: a projection behind the log. It can be dropped and built again.

-- +goose Up
-- +goose StatementBegin
CREATE TABLE search_parts (
    tenant_id text COLLATE "C" NOT NULL,
    sid       uuid        NOT NULL,
    seq       bigint      NOT NULL,
    part      integer     NOT NULL,
    -- Follows the order of the feed within a tenant, so within a session that of seq.
    doc       bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
    -- 1 message, 2 tool result, 3 tool call, 4 summary.
    kind      smallint    NOT NULL,
    role      smallint    NOT NULL,
    flags     integer     NOT NULL,
    epoch     bigint      NOT NULL,
    tokens    integer     NOT NULL,
    -- Words and characters, for the rank.
    length    integer     NOT NULL,
    tool      text COLLATE "C" NOT NULL,
    speaker   text COLLATE "C" NOT NULL,
    at        timestamptz NOT NULL,
    -- Made by the service, not by a configuration of the database. Every lexeme
    -- starts with the tenant's mark; weights C, B, A tell of 2, 3 to 4, 5 or more.
    terms     tsvector    NOT NULL,
    -- The text without NUL, for phrases, expressions, the exact rank, snippets.
    body      text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant_id, sid, seq, part)
);
CREATE INDEX search_parts_terms ON search_parts USING gin (terms) WITH (fastupdate = on, gin_pending_list_limit = 2048);
CREATE UNIQUE INDEX search_parts_doc ON search_parts (tenant_id, doc);

-- How far each session is indexed, and its sums for the rank.
CREATE TABLE search_sessions (
    tenant_id text COLLATE "C" NOT NULL,
    sid       uuid   NOT NULL,
    seq       bigint NOT NULL,
    parts     bigint NOT NULL,
    length    bigint NOT NULL,
    PRIMARY KEY (tenant_id, sid)
);

-- How far the feed of each tenant is indexed, and by whom it is being indexed.
CREATE TABLE search_cursors (
    tenant_id     text COLLATE "C" PRIMARY KEY,
    xid           xid8        NOT NULL,
    position      bigint      NOT NULL,
    claimed_until timestamptz NOT NULL DEFAULT '-infinity',
    updated_at    timestamptz NOT NULL DEFAULT now()
);

-- An erasure blanks events of sessions that inherited from the erased one. What
-- was indexed of them goes with it. Appends never update an event.
CREATE FUNCTION search_forget_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM search_parts WHERE tenant_id = NEW.tenant_id AND sid = NEW.sid AND seq = NEW.seq;
    RETURN NULL;
END
$$;
CREATE TRIGGER search_forget_event AFTER UPDATE OF body ON events
    FOR EACH ROW EXECUTE FUNCTION search_forget_event();

-- Whether a part is among those asked for. Empty arrays and texts, 0 for an
-- epoch ask for any. paths are the seqs of each of sids.
CREATE FUNCTION search_fits(
    p_sid uuid, p_seq bigint, p_kind smallint, p_role smallint, p_tool text, p_epoch bigint, p_at timestamptz, p_flags integer,
    kinds smallint[], roles smallint[], tool text, epoch bigint, since timestamptz, until timestamptz,
    hidden integer, sids uuid[], paths text[]
) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT (cardinality(kinds) = 0 OR p_kind = ANY (kinds))
        AND (cardinality(roles) = 0 OR p_role = ANY (roles))
        AND (tool = '' OR p_tool = tool)
        AND (epoch = 0 OR p_epoch = epoch)
        AND p_at >= since AND p_at < until AND p_flags & hidden = 0
        AND (cardinality(sids) = 0
             OR p_sid = ANY (sids) AND p_seq <@ (paths[array_position(sids, p_sid)])::int8multirange)
$$;
-- +goose StatementEnd
