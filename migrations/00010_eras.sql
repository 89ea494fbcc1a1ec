-- Eras of the feed. Its order is that of transaction ids, which mean nothing in
-- another cluster: there a new era begins.

-- +goose Up
-- +goose StatementBegin
-- cluster_identity names the cluster that this database is in; empty where the
-- server does not tell it to this role.
CREATE FUNCTION cluster_identity() RETURNS text
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT c.system_identifier::text FROM pg_control_system() c);
EXCEPTION WHEN insufficient_privilege THEN
    RETURN '';
END
$$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TABLE feed_eras (
    era       bigint PRIMARY KEY,
    -- cluster_identity() of the cluster whose transaction ids order it.
    cluster   text        NOT NULL,
    -- Events up to this place are older than the era; they come first in it.
    position  bigint      NOT NULL DEFAULT 0,
    opened_at timestamptz NOT NULL DEFAULT now()
);
-- +goose StatementEnd
INSERT INTO feed_eras (era, cluster) VALUES (1, cluster_identity());
