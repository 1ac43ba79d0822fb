-- +goose Up

-- A lease isn't copied when a store is moved or restored: a new row is not claimed.
ALTER TABLE deliveries ALTER COLUMN leased_until SET DEFAULT 0;
