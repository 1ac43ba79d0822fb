-- +goose Up

-- Ids are never reused: a rollback doesn't reset a sequence. Times are Unix
-- milliseconds; 0 means never. Text that is compared is compared byte by byte, so
-- that no index depends on the collations of the system.

CREATE TABLE pets (
  id          bigint   GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name        text     NOT NULL,
  -- No foreign key: it would lock the category's row for every pet added, and all
  -- of them share a few rows. Categories are never deleted.
  category_id bigint   NOT NULL,
  status      smallint NOT NULL CHECK (status BETWEEN 0 AND 2) -- available, pending, sold
);
-- For the lists of one status, and of one category in one status. They don't contain
-- names, which can be too long for an index.
CREATE INDEX pets_by_status   ON pets (status, id);
CREATE INDEX pets_by_category ON pets (category_id, status, id);

CREATE TABLE categories (
  id   bigint PRIMARY KEY, -- chosen by callers
  name text   NOT NULL
);

CREATE TABLE orders (
  id         bigint   GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  pet_id     bigint   NOT NULL, -- no foreign key: an order outlives its pet
  status     smallint NOT NULL CHECK (status BETWEEN 0 AND 3), -- placed, approved, delivered, cancelled
  created_at bigint   NOT NULL,
  updated_at bigint   NOT NULL
);
CREATE INDEX orders_by_status ON orders (status, id);
CREATE INDEX orders_by_pet    ON orders (pet_id, status, id);
-- A pet has at most one open order.
CREATE UNIQUE INDEX orders_open ON orders (pet_id) WHERE status <= 1;

-- Idempotency records: the results of writes that clients may retry.
CREATE TABLE answers (
  key_id     bigint NOT NULL,
  route      text   COLLATE "C" NOT NULL,
  token      text   COLLATE "C" NOT NULL,
  body_hash  bytea  NOT NULL,
  answer     text   NOT NULL, -- the pet or order as JSON
  created_at bigint NOT NULL,
  PRIMARY KEY (key_id, route, token)
);
CREATE INDEX answers_by_age ON answers (created_at);

CREATE TABLE keys (
  id          bigint   GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name        text     NOT NULL,
  plan        text     NOT NULL,
  per_minute  bigint   NOT NULL,
  per_day     bigint   NOT NULL,
  permissions smallint NOT NULL, -- bits: 1 read, 2 write, 4 admin
  environment text     COLLATE "C" NOT NULL,
  created_at  bigint   NOT NULL,
  expires_at  bigint   NOT NULL,
  last_used   bigint   NOT NULL,
  revoked_at  bigint   NOT NULL,
  unbanned_at bigint   NOT NULL
);
-- The few keys that can manage keys.
CREATE INDEX keys_admin ON keys (environment, id) WHERE permissions & 4 <> 0 AND revoked_at = 0;

-- Secrets are separate rows, because a rotated key has two for a while.
CREATE TABLE key_secrets (
  hash       bytea  PRIMARY KEY CHECK (length(hash) = 32), -- SHA-256
  key_id     bigint NOT NULL REFERENCES keys (id),
  expires_at bigint NOT NULL
);
CREATE INDEX key_secrets_by_key ON key_secrets (key_id);

CREATE TABLE usage (
  key_id   bigint NOT NULL REFERENCES keys (id),
  hour     bigint NOT NULL, -- its first millisecond
  admitted bigint NOT NULL,
  refused  bigint NOT NULL,
  PRIMARY KEY (key_id, hour)
);
CREATE INDEX usage_by_hour ON usage (hour); -- to drop old rows

-- The state of the rate limiter, so that a restart doesn't reset it.
CREATE TABLE limit_states (
  key_id         bigint PRIMARY KEY REFERENCES keys (id),
  minute_used    bigint NOT NULL,
  minute_end     bigint NOT NULL,
  minute_refused bigint NOT NULL,
  day_used       bigint NOT NULL,
  day_end        bigint NOT NULL,
  day_refused    bigint NOT NULL,
  strikes        bigint NOT NULL,
  strikes_since  bigint NOT NULL,
  banned_at      bigint NOT NULL,
  banned_until   bigint NOT NULL,
  ban_level      bigint NOT NULL
);
