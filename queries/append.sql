-- name: AppendEvents :one
SELECT o.o_verdict::integer[] AS verdict, o.o_sid::uuid[] AS sid, o.o_head::bigint[] AS head, o.o_host_head::bigint[] AS host_head,
       o.o_epoch::bigint[] AS epoch, o.o_debt::boolean[] AS debt, o.o_seq::bigint[] AS seq, o.o_known::boolean[] AS known
FROM append_events(
    @tenant_id::text, @try_locks::boolean, @default_budget::bigint, @debt_milli::bigint,
    @i_key::text[], @i_sid::uuid[], @i_create::boolean[], @i_host::boolean[], @i_gateway::text[],
    @i_host_session::text[], @i_expected_head::bigint[], @i_expected_epoch::bigint[], @i_lease::text[],
    @i_gate::integer[], @i_budget::bigint[], @i_owes::boolean[],
    @i_events::integer[], @i_keyed::boolean[], @i_large::boolean[],
    @e_item::integer[], @e_type::smallint[], @e_hash::bytea[], @e_body::bytea[], @e_version::smallint[],
    @e_role::smallint[], @e_tokens::integer[], @e_flags::integer[], @e_links::bytea[],
    @e_kind::smallint[], @e_key::bytea[], @e_kind2::smallint[], @e_key2::bytea[], @i_sealed::boolean[]
) AS o;

-- name: LockSession :exec
SELECT pg_advisory_xact_lock(session_lock_id(@tenant_id::text, @session_key::text));

-- name: KnownKeys :many
-- A probe per key, as in Bodies.
SELECT k.key, k.seq
FROM sessions s
CROSS JOIN unnest(@keys::bytea[]) AS u (key)
CROSS JOIN LATERAL (
    SELECT x.key, x.seq FROM event_keys x
    WHERE x.tenant_id = s.tenant_id AND x.sid = s.sid AND x.kind = @kind AND x.key = u.key LIMIT 1) k
WHERE s.tenant_id = @tenant_id AND s.session_key = @session_key;
