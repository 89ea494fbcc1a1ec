-- A search of a whole tenant asks whether any session of it is encrypted: without
-- an index that reads all of them where none is. Most sessions are in none of this.

-- +goose Up
CREATE INDEX sessions_sealed ON sessions (tenant_id, sid) WHERE sealed;
