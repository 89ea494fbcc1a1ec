-- Row level security: the second line of the border between tenants.
--
-- The policies bind one role alone, engined_tenant, which a node becomes for
-- the length of each transaction about a tenant. The role that owns the tables
-- serves all tenants: relay, sweeps, indexing and administration run as it.
-- Policies name the role as a text, so that a dump can be restored where it does
-- not exist yet.

-- +goose Up
-- +goose StatementBegin
-- secure_tables makes the role where it is missing, has the policies on every
-- table with a tenant, and lets the role use them. Every migration that makes a
-- table ends by calling it; so does migrating after a restore elsewhere.
CREATE FUNCTION secure_tables() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    t record;
BEGIN
    PERFORM pg_advisory_xact_lock(7420, 20);
    IF to_regrole('engined_tenant') IS NULL THEN
        BEGIN
            CREATE ROLE engined_tenant NOLOGIN;
        EXCEPTION
            WHEN duplicate_object OR unique_violation THEN NULL; -- another database of this server was faster
            WHEN insufficient_privilege THEN
                RAISE NOTICE 'the role engined_tenant could not be made; create it, grant it to %, and run select secure_tables()', current_user;
        END;
    END IF;
    FOR t IN
        SELECT c.oid::regclass AS name, c.relrowsecurity AS secured
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped
        WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')
    LOOP
        IF NOT EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = t.name AND p.polname = 'own_tenant') THEN
            -- A policy that allows is needed for one that restricts to count.
            EXECUTE format('CREATE POLICY everything ON %s USING (true)', t.name);
            EXECUTE format('CREATE POLICY own_tenant ON %s AS RESTRICTIVE USING ((SELECT current_user <> ''engined_tenant'') OR tenant_id = (SELECT current_setting(''engined.tenant'', true)))', t.name);
        END IF;
        IF NOT t.secured THEN
            EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', t.name);
        END IF;
        IF to_regrole('engined_tenant') IS NOT NULL THEN
            EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO engined_tenant', t.name);
        END IF;
    END LOOP;
    IF to_regrole('engined_tenant') IS NOT NULL THEN
        EXECUTE format('GRANT USAGE ON SCHEMA %I TO engined_tenant', current_schema());
        IF NOT pg_has_role('engined_tenant', 'MEMBER') THEN
            EXECUTE format('GRANT engined_tenant TO %I', current_user);
        END IF;
    END IF;
END
$$;
-- +goose StatementEnd

SELECT secure_tables();
