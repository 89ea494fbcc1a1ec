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

SELECT secure_tables();
