-- An erasure passes over no row that somebody changes meanwhile.

-- +goose Up
-- +goose StatementBegin
-- erase_rows deletes up to p_max rows of an erased session from one of
-- session_tables and adds them to its receipt. It does nothing to a session
-- that has no tombstone. A row that was changed between its being found and its
-- being deleted is in another place by then: it is looked for anew until there is
-- none.
CREATE OR REPLACE FUNCTION erase_rows(p_tenant text, p_sid uuid, p_table text, p_max integer) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    n    bigint := 0;
    gone bigint;
    more boolean;
BEGIN
    IF NOT EXISTS (SELECT FROM session_tables() x WHERE x = p_table) THEN
        RAISE EXCEPTION '% is not a table of sessions', p_table;
    END IF;
    IF NOT EXISTS (SELECT FROM tombstones t WHERE t.tenant_id = p_tenant AND t.sid = p_sid) THEN
        RETURN 0;
    END IF;
    LOOP
        EXECUTE format(
            'DELETE FROM %1$I WHERE tenant_id = $1 AND sid = $2 AND ctid = ANY (ARRAY(
                 SELECT ctid FROM %1$I WHERE tenant_id = $1 AND sid = $2 LIMIT $3))', p_table)
            USING p_tenant, p_sid, p_max - n;
        GET DIAGNOSTICS gone = ROW_COUNT;
        n := n + gone;
        EXIT WHEN n >= p_max;
        EXECUTE format('SELECT EXISTS (SELECT FROM %I WHERE tenant_id = $1 AND sid = $2)', p_table) INTO more USING p_tenant, p_sid;
        EXIT WHEN NOT more;
    END LOOP;
    IF n > 0 THEN
        UPDATE tombstones t
        SET counts = t.counts || jsonb_build_object(p_table, coalesce((t.counts ->> p_table)::bigint, 0) + n)
        WHERE t.tenant_id = p_tenant AND t.sid = p_sid;
    END IF;
    RETURN n;
END
$$;
-- +goose StatementEnd
