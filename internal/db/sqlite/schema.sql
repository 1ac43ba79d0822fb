-- Ids are never reused, not even after a row is deleted: AUTOINCREMENT.
-- Times are Unix milliseconds; 0 means never.

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

CREATE TABLE categories (
  id   INTEGER PRIMARY KEY, -- chosen by callers
  name TEXT NOT NULL
) STRICT;

CREATE TABLE orders (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  pet_id     INTEGER NOT NULL, -- no foreign key: an order outlives its pet
  status     INTEGER NOT NULL CHECK (status BETWEEN 0 AND 3), -- placed, approved, delivered, cancelled
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;

-- Both contain all columns, like those of pets: the orders of a rare status would each
-- be on a different page of the table.
CREATE INDEX orders_by_status ON orders (status, id, pet_id, created_at, updated_at);
CREATE INDEX orders_by_pet    ON orders (pet_id, status, id, created_at, updated_at);

-- A pet has at most one open order.
CREATE UNIQUE INDEX orders_open ON orders (pet_id) WHERE status <= 1;

-- Idempotency records: the results of writes that clients may retry.
CREATE TABLE answers (
  key_id     INTEGER NOT NULL,
  route      TEXT    NOT NULL,
  token      TEXT    NOT NULL,
  body_hash  BLOB    NOT NULL,
  answer     TEXT    NOT NULL, -- the pet or order as JSON
  created_at INTEGER NOT NULL,
  PRIMARY KEY (key_id, route, token)
) STRICT;

CREATE INDEX answers_by_age ON answers (created_at);

CREATE TABLE keys (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,
  name        TEXT    NOT NULL,
  plan        TEXT    NOT NULL,
  per_minute  INTEGER NOT NULL,
  per_day     INTEGER NOT NULL,
  permissions INTEGER NOT NULL, -- bits: 1 read, 2 write, 4 admin
  environment TEXT    NOT NULL,
  created_at  INTEGER NOT NULL,
  expires_at  INTEGER NOT NULL,
  last_used   INTEGER NOT NULL,
  revoked_at  INTEGER NOT NULL,
  unbanned_at INTEGER NOT NULL
) STRICT;

-- Secrets are separate rows, because a rotated key has two for a while.
CREATE TABLE key_secrets (
  hash       BLOB PRIMARY KEY, -- SHA-256
  key_id     INTEGER NOT NULL REFERENCES keys (id),
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX key_secrets_by_key ON key_secrets (key_id);

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
