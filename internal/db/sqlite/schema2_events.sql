-- Every change of a pet, order, category or key adds a row in its transaction. The
-- newest row is never deleted, so SQLite assigns consecutive ids without AUTOINCREMENT.
CREATE TABLE events (
  id         INTEGER PRIMARY KEY,
  type       INTEGER NOT NULL, -- index in animalstore.EventTypes
  subject_id INTEGER NOT NULL, -- of the resource that the type names
  created_at INTEGER NOT NULL,
  key_id     INTEGER NOT NULL, -- who made the change; 0 is the command line
  request_id TEXT    NOT NULL,
  data       TEXT    NOT NULL  -- the resource as JSON
) STRICT;

-- For the events of one resource; ids are part of every index. Pets get rising ids, so a
-- create adds its entry at the end.
CREATE INDEX events_by_subject ON events (subject_id);
