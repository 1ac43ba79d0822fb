-- A checksum finds bytes that were damaged outside of SQLite. Parts that were stored
-- without one have 0.
ALTER TABLE photo_parts ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
