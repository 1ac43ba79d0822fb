-- Ids are never reused, not even after a row is deleted: AUTOINCREMENT.
-- Times are Unix milliseconds; 0 means never.

-- Tells this store's backups from those of other stores. A restored store gets a new id, and
-- so does one that finds a backup with its id that it didn't begin: it is a copy of another
-- store, or another is a copy of it. The times are the latest in names of backups, stored
-- before these are made or uploaded.
CREATE TABLE store_id (
  id           INTEGER PRIMARY KEY CHECK (id = 1),
  value        TEXT    NOT NULL, -- 12 hexadecimal digits
  backed_up_at INTEGER NOT NULL, -- in a directory
  uploaded_at  INTEGER NOT NULL  -- to a bucket
) STRICT;

INSERT INTO store_id VALUES (1, lower(hex(randomblob(6))), 0, 0);

CREATE TABLE pets (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,
  name        TEXT    NOT NULL,
  category_id INTEGER NOT NULL,
  status      INTEGER NOT NULL CHECK (status BETWEEN 0 AND 2) -- available, pending, sold
) STRICT;

-- Contains all columns, so that a filtered page is read from the index alone.
CREATE INDEX pets_by_status ON pets (status, id, category_id, name);

-- For a category in one status and, read once per status, for the whole category.
-- It contains all columns too. Without the name the planner would rather scan all of
-- pets_by_status, because that avoids looking up rows.
CREATE INDEX pets_by_category ON pets (category_id, status, id, name);

-- The entries of names, by db.NameEntries, to find pets by them.
CREATE TABLE name_entries (
  entry  TEXT    NOT NULL,
  pet_id INTEGER NOT NULL, -- no foreign key: to check it, every removal would read all entries
  shared INTEGER NOT NULL,
  PRIMARY KEY (entry, pet_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE photos (
  id              INTEGER PRIMARY KEY AUTOINCREMENT,
  pet_id          INTEGER NOT NULL REFERENCES pets (id), -- a pet is removed after its photos
  content_type    TEXT    NOT NULL, -- of both images
  width           INTEGER NOT NULL,
  height          INTEGER NOT NULL,
  bytes           INTEGER NOT NULL,
  thumbnail_bytes INTEGER NOT NULL,
  created_at      INTEGER NOT NULL
) STRICT;

CREATE INDEX photos_by_pet ON photos (pet_id, id);

-- The bytes of the images, so that no list of photos reads them.
CREATE TABLE photo_parts (
  photo_id INTEGER NOT NULL REFERENCES photos (id),
  kind     INTEGER NOT NULL CHECK (kind BETWEEN 0 AND 1), -- image, thumbnail
  part     INTEGER NOT NULL, -- of 256 KiB, from 0
  data     BLOB    NOT NULL,
  PRIMARY KEY (photo_id, kind, part)
) STRICT;

-- How many bytes all images have, in one row or, at first, none.
CREATE TABLE photo_total (
  id    INTEGER PRIMARY KEY CHECK (id = 1),
  bytes INTEGER NOT NULL
) STRICT;

CREATE TABLE categories (
  id   INTEGER PRIMARY KEY, -- chosen by callers
  name TEXT NOT NULL
) STRICT;

CREATE TABLE orders (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  pet_id     INTEGER NOT NULL, -- no foreign key: an order outlives its pet
  status     INTEGER NOT NULL CHECK (status BETWEEN 0 AND 3), -- placed, approved, delivered, cancelled
  reference  TEXT    NOT NULL, -- empty: none
  note       TEXT    NOT NULL, -- empty: none
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;

-- They don't contain all columns, because notes can be long.
CREATE INDEX orders_by_status        ON orders (status, id);
CREATE INDEX orders_by_pet           ON orders (pet_id, status, id);
CREATE INDEX orders_by_reference     ON orders (reference, status, id) WHERE reference <> '';
CREATE INDEX orders_by_pet_reference ON orders (pet_id, reference, status, id) WHERE reference <> '';

-- A pet has at most one open order.
CREATE UNIQUE INDEX orders_open ON orders (pet_id) WHERE status <= 1;

-- Idempotency records: the results of writes that clients may retry.
CREATE TABLE idempotency_records (
  key_id     INTEGER NOT NULL,
  operation  TEXT    NOT NULL,
  token      TEXT    NOT NULL,
  body_hash  BLOB    NOT NULL,
  result     TEXT    NOT NULL, -- the pet, photo or order as JSON
  created_at INTEGER NOT NULL,
  PRIMARY KEY (key_id, operation, token)
) STRICT;

CREATE INDEX idempotency_records_by_age ON idempotency_records (created_at);

CREATE TABLE keys (
  id           INTEGER PRIMARY KEY AUTOINCREMENT,
  name         TEXT    NOT NULL,
  plan         TEXT    NOT NULL,
  per_minute   INTEGER NOT NULL,
  per_day      INTEGER NOT NULL,
  permissions  INTEGER NOT NULL, -- bits: 1 read, 2 write, 4 admin, 8 pets:read, 16 pets:write, 32 orders:read, 64 orders:write
  environment  TEXT    NOT NULL,
  created_at   INTEGER NOT NULL,
  expires_at   INTEGER NOT NULL,
  networks     TEXT    NOT NULL, -- separated by commas; '' is anywhere
  last_used    INTEGER NOT NULL,
  revoked_at   INTEGER NOT NULL,
  unbanned_at  INTEGER NOT NULL,
  suspended_at INTEGER NOT NULL
) STRICT;

-- Secrets are separate rows, because a rotated key has two for a while.
CREATE TABLE key_secrets (
  hash       BLOB PRIMARY KEY, -- SHA-256
  key_id     INTEGER NOT NULL REFERENCES keys (id),
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX key_secrets_by_key ON key_secrets (key_id);

-- A value that changes with every change of a key or secret, in the same transaction: a
-- server learns from one row whether the keys it knows are still the same. It is random,
-- because a counter in a store that went back to a backup could return to a value it had
-- with other keys. Triggers set it, so that no change can miss it.
CREATE TABLE keys_version (
  id      INTEGER PRIMARY KEY CHECK (id = 1),
  version TEXT NOT NULL
) STRICT;

INSERT INTO keys_version VALUES (1, hex(randomblob(16)));

-- All columns but last_used, which changes all the time and decides nothing. A new key
-- comes with a secret.
CREATE TRIGGER keys_updated AFTER UPDATE OF id, name, plan, per_minute, per_day, permissions, environment, created_at, expires_at, networks, revoked_at, unbanned_at, suspended_at ON keys
  BEGIN UPDATE keys_version SET version = hex(randomblob(16)); END;
CREATE TRIGGER keys_deleted AFTER DELETE ON keys
  BEGIN UPDATE keys_version SET version = hex(randomblob(16)); END;
CREATE TRIGGER key_secrets_inserted AFTER INSERT ON key_secrets
  BEGIN UPDATE keys_version SET version = hex(randomblob(16)); END;
CREATE TRIGGER key_secrets_updated AFTER UPDATE ON key_secrets
  BEGIN UPDATE keys_version SET version = hex(randomblob(16)); END;
CREATE TRIGGER key_secrets_deleted AFTER DELETE ON key_secrets
  BEGIN UPDATE keys_version SET version = hex(randomblob(16)); END;

CREATE TABLE usage (
  key_id   INTEGER NOT NULL REFERENCES keys (id),
  hour     INTEGER NOT NULL, -- its first millisecond
  admitted INTEGER NOT NULL,
  refused  INTEGER NOT NULL,
  PRIMARY KEY (key_id, hour)
) STRICT, WITHOUT ROWID;

CREATE INDEX usage_by_hour ON usage (hour); -- to drop old rows

-- The state of the rate limiter, so that a restart doesn't reset it.
CREATE TABLE limit_states (
  key_id         INTEGER PRIMARY KEY REFERENCES keys (id),
  minute_used    INTEGER NOT NULL,
  minute_end     INTEGER NOT NULL,
  minute_refused INTEGER NOT NULL,
  day_used       INTEGER NOT NULL,
  day_end        INTEGER NOT NULL,
  day_refused    INTEGER NOT NULL,
  strikes        INTEGER NOT NULL,
  strikes_since  INTEGER NOT NULL,
  banned_at      INTEGER NOT NULL,
  banned_until   INTEGER NOT NULL,
  ban_level      INTEGER NOT NULL
) STRICT;

-- Every change of a pet, photo, order, category, key or webhook adds a row in its
-- transaction. The newest row is never deleted, so SQLite assigns consecutive ids without
-- AUTOINCREMENT.
CREATE TABLE events (
  id         INTEGER PRIMARY KEY,
  type       INTEGER NOT NULL, -- index in animalstore.EventTypes
  subject_id INTEGER NOT NULL, -- of the resource that the type names
  pet_id     INTEGER NOT NULL, -- of the pet itself, or of the photo's or order's pet; 0: none
  created_at INTEGER NOT NULL,
  key_id     INTEGER NOT NULL, -- who made the change; 0 is the command line, -1 the service
  request_id TEXT    NOT NULL,
  data       TEXT    NOT NULL  -- the resource as JSON
) STRICT;

-- For the events of a pet with its photos and orders, and of any other resource; ids are
-- part of every index. Pets get rising ids, so a create adds one entry, at the end.
CREATE INDEX events_by_pet     ON events (pet_id) WHERE pet_id <> 0;
CREATE INDEX events_by_subject ON events (subject_id) WHERE type > 2; -- all but pets

CREATE TABLE webhooks (
  id               INTEGER PRIMARY KEY AUTOINCREMENT,
  url              TEXT    NOT NULL,
  types            TEXT    NOT NULL, -- comma-separated patterns
  description      TEXT    NOT NULL,
  state            INTEGER NOT NULL CHECK (state BETWEEN 0 AND 2), -- active, paused, disabled
  disabled_reason  TEXT    NOT NULL,
  secret           TEXT    NOT NULL, -- readable, because it signs
  old_secret       TEXT    NOT NULL, -- signs too until old_secret_until
  old_secret_until INTEGER NOT NULL,
  created_at       INTEGER NOT NULL,
  delivered_at     INTEGER NOT NULL, -- the last success
  failed_at        INTEGER NOT NULL, -- the last failure
  failing_since    INTEGER NOT NULL, -- the first failure since the last success
  from_event       INTEGER NOT NULL, -- it gets events with higher ids than this
  to_event         INTEGER NOT NULL  -- up to this, unless it is 0
) STRICT;

-- One row for each event and each webhook that gets it. The data is a copy, so that
-- events can be dropped before they are delivered. Only the server that holds the file's
-- lock sends them, and it keeps its claims in memory.
CREATE TABLE deliveries (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  webhook_id INTEGER NOT NULL, -- no foreign key: rows of a deleted webhook are dropped later
  event_id   INTEGER NOT NULL, -- 0 is a ping
  type       INTEGER NOT NULL, -- index in animalstore.EventTypes; -1 is a ping
  event_time INTEGER NOT NULL,
  data       TEXT    NOT NULL,
  state      INTEGER NOT NULL CHECK (state BETWEEN 0 AND 2), -- pending, delivered, failed
  tries      INTEGER NOT NULL, -- since it was created or last retried by hand
  retries    INTEGER NOT NULL DEFAULT 0, -- by hand
  attempts   TEXT    NOT NULL, -- the last ones, as JSON
  due_at     INTEGER NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;

CREATE INDEX deliveries_by_webhook ON deliveries (webhook_id, state, id);
CREATE INDEX deliveries_due        ON deliveries (webhook_id, due_at) WHERE state = 0;
CREATE INDEX deliveries_pings      ON deliveries (webhook_id, due_at) WHERE state = 0 AND event_id = 0;

-- The last event that was turned into deliveries, in one row or, at first, none.
CREATE TABLE webhook_position (
  id       INTEGER PRIMARY KEY CHECK (id = 1),
  event_id INTEGER NOT NULL
) STRICT;

-- Who is signed in to the console. It has no reference to key_secrets: a session whose
-- secret is gone is refused, and deleted once it expires.
CREATE TABLE console_sessions (
  hash       BLOB PRIMARY KEY, -- SHA-256 of the token
  secret     BLOB    NOT NULL, -- SHA-256 of the key's secret
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX console_sessions_by_expiry ON console_sessions (expires_at);

-- Forms that were sent and must not be sent again.
CREATE TABLE console_forms (
  hash    BLOB PRIMARY KEY, -- SHA-256 of the form's token
  used_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX console_forms_by_age ON console_forms (used_at);

-- Requests that got an error response.
CREATE TABLE failures (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,
  time        INTEGER NOT NULL,
  request_id  TEXT    NOT NULL,
  key_id      INTEGER NOT NULL,
  method      TEXT    NOT NULL,
  route       TEXT    NOT NULL, -- '' if the path matched none
  path        TEXT    NOT NULL,
  status      INTEGER NOT NULL,
  code        TEXT    NOT NULL,
  message     TEXT    NOT NULL,
  duration_ms INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX failures_by_second ON failures (time / 1000, key_id, code); -- one of each is kept
CREATE INDEX failures_by_key     ON failures (key_id);
CREATE INDEX failures_by_code    ON failures (code);
CREATE INDEX failures_by_request ON failures (request_id);
CREATE INDEX failures_by_time    ON failures (time);

-- How many rows failures has, because counting a million takes long.
CREATE TABLE failure_total (
  id     INTEGER PRIMARY KEY CHECK (id = 1),
  stored INTEGER NOT NULL
) STRICT;

INSERT INTO failure_total VALUES (1, 0);
