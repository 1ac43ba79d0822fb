-- Every change of a pet, order, category or key adds a row in its transaction. The
-- newest row is never deleted, so SQLite assigns consecutive ids without AUTOINCREMENT.
-- There is no index besides: one on the subject would cost every change more than the
-- row itself.
CREATE TABLE events (
  id         INTEGER PRIMARY KEY,
  type       INTEGER NOT NULL, -- index in animalstore.EventTypes
  subject_id INTEGER NOT NULL, -- of the resource that the type names
  created_at INTEGER NOT NULL,
  key_id     INTEGER NOT NULL, -- who made the change; 0 is the command line
  request_id TEXT    NOT NULL,
  data       TEXT    NOT NULL  -- the resource as JSON
) STRICT;
