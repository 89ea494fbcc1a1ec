-- Who may call, who called what, and how much a tenant may have.

-- +goose Up
-- +goose StatementBegin
-- A key is looked up by the id that its token carries, before its tenant is
-- known, so here the tenant does not lead.
CREATE TABLE api_keys (
    id           text COLLATE "C" PRIMARY KEY,
    tenant_id    text COLLATE "C" NOT NULL,
    name         text        NOT NULL,
    -- Bits: 1 gateway, 2 worker, 4 analyst, 8 admin.
    scopes       smallint    NOT NULL,
    -- sha256 of the token.
    hash         bytea       NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    expires_at   timestamptz,
    revoked_at   timestamptz,
    last_used_at timestamptz
);
CREATE INDEX api_keys_by_tenant ON api_keys (tenant_id, created_at);

-- One row a call. Ids and names only, never what was read or written.
CREATE TABLE audit (
    tenant_id   text COLLATE "C" NOT NULL,
    id          bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
    at          timestamptz NOT NULL,
    key_id      text COLLATE "C" NOT NULL,
    request_id  text COLLATE "C" NOT NULL,
    method      text COLLATE "C" NOT NULL,
    route       text COLLATE "C" NOT NULL,
    session_key text COLLATE "C",
    status      smallint    NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
-- For the end of the retention. Rows come in the order of their time.
CREATE INDEX audit_by_time ON audit USING brin (at);

-- What differs from the settings; null is the setting, 0 is no limit.
CREATE TABLE tenant_limits (
    tenant_id     text COLLATE "C" PRIMARY KEY,
    rate          double precision,
    concurrency   bigint,
    sessions      bigint,
    storage_bytes bigint,
    updated_at    timestamptz NOT NULL DEFAULT now()
);

-- What a tenant's events hold, counted up to a place in the gap-safe order.
-- Only tenants with a limit of bytes are counted.
CREATE TABLE tenant_usage (
    tenant_id  text COLLATE "C" PRIMARY KEY,
    xid        xid8        NOT NULL,
    position   bigint      NOT NULL,
    bytes      bigint      NOT NULL,
    counted_at timestamptz NOT NULL DEFAULT now()
);
-- +goose StatementEnd

-- +goose StatementBegin
-- What is deleted counts no more, if it was counted.
CREATE FUNCTION uncount_events() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE tenant_usage u SET bytes = greatest(u.bytes - g.bytes, 0)
    FROM (SELECT x.tenant_id, sum(octet_length(x.body)) AS bytes
          FROM gone x JOIN tenant_usage c ON c.tenant_id = x.tenant_id AND (x.xid, x.position) <= (c.xid, c.position)
          GROUP BY x.tenant_id) g
    WHERE u.tenant_id = g.tenant_id;
    RETURN NULL;
END
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION uncount_bodies() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE tenant_usage u SET bytes = greatest(u.bytes - g.bytes, 0)
    FROM (SELECT x.tenant_id, sum(octet_length(x.body)) AS bytes FROM gone x GROUP BY x.tenant_id) g
    WHERE u.tenant_id = g.tenant_id;
    RETURN NULL;
END
$$;
-- +goose StatementEnd

CREATE TRIGGER uncount AFTER DELETE ON events REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION uncount_events();
CREATE TRIGGER uncount AFTER DELETE ON bodies REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION uncount_bodies();
