-- Row level security: the second line of the border between tenants.
--
-- The policies bind one role alone, engined_tenant, which a node becomes for
-- the length of each transaction about a tenant. The role that owns the tables
-- serves all tenants: relay, sweeps, indexing and administration run as it.

-- +goose Up
-- +goose StatementBegin
DO $$
BEGIN
    CREATE ROLE engined_tenant NOLOGIN;
EXCEPTION
    WHEN duplicate_object OR unique_violation THEN NULL; -- of another database of this server
    WHEN insufficient_privilege THEN
        RAISE NOTICE 'the role engined_tenant could not be made; create it and grant it to %, then run select secure_tables()', current_user;
END
$$;
-- +goose StatementEnd

-- +goose StatementBegin
-- secure_tables has the policies on every table that has a tenant, and the role
-- able to use them. Every migration that makes a table ends by calling it.
CREATE FUNCTION secure_tables() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    t record;
    known CONSTANT boolean := EXISTS (SELECT FROM pg_roles WHERE rolname = 'engined_tenant');
BEGIN
    FOR t IN
        SELECT c.oid::regclass AS name, c.relrowsecurity AS secured
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped
        WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')
    LOOP
        CONTINUE WHEN NOT known;
        IF NOT EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = t.name AND p.polname = 'own_tenant') THEN
            -- A policy that allows is needed for one that restricts to count.
            EXECUTE format('CREATE POLICY everything ON %s USING (true)', t.name);
            EXECUTE format('CREATE POLICY own_tenant ON %s AS RESTRICTIVE TO engined_tenant USING (tenant_id = (SELECT current_setting(''engined.tenant'', true)))', t.name);
        END IF;
        IF NOT t.secured THEN
            EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', t.name);
        END IF;
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO engined_tenant', t.name);
    END LOOP;
    IF known THEN
        EXECUTE format('GRANT USAGE ON SCHEMA %I TO engined_tenant', current_schema());
        IF NOT pg_has_role('engined_tenant', 'MEMBER') THEN
            EXECUTE format('GRANT engined_tenant TO %I', current_user);
        END IF;
    END IF;
END
$$;
-- +goose StatementEnd

SELECT secure_tables();
