-- +goose Up

-- A checksum finds bytes that were damaged outside of PostgreSQL. Parts that were stored
-- without one have 0, and so have those that earlier versions add.
ALTER TABLE photo_parts ADD COLUMN checksum bigint NOT NULL DEFAULT 0;
