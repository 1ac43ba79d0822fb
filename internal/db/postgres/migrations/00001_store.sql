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

-- The entries of names, by db.NameEntries, to find pets by them.
CREATE TABLE name_entries (
  entry  text   COLLATE "C" NOT NULL,
  pet_id bigint NOT NULL, -- no foreign key: to check it, every removal would read all entries
  shared bigint NOT NULL,
  PRIMARY KEY (entry, pet_id) INCLUDE (shared)
);

CREATE TABLE photos (
  id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  pet_id          bigint NOT NULL REFERENCES pets (id), -- a pet is removed after its photos
  content_type    text   NOT NULL, -- of both images
  width           bigint NOT NULL,
  height          bigint NOT NULL,
  bytes           bigint NOT NULL,
  thumbnail_bytes bigint NOT NULL,
  created_at      bigint NOT NULL
);
CREATE INDEX photos_by_pet ON photos (pet_id, id);

-- The bytes of the images, so that no list of photos reads them.
CREATE TABLE photo_parts (
  photo_id bigint   NOT NULL REFERENCES photos (id),
  kind     smallint NOT NULL CHECK (kind BETWEEN 0 AND 1), -- image, thumbnail
  part     bigint   NOT NULL, -- of 256 KiB, from 0
  data     bytea    NOT NULL,
  PRIMARY KEY (photo_id, kind, part)
);
ALTER TABLE photo_parts ALTER COLUMN data SET STORAGE EXTERNAL; -- images are compressed already

-- How many bytes all images have, in one row or, at first, none. Every change of photos
-- locks it, as its last step: reading pictures takes far longer than that.
CREATE TABLE photo_total (
  id    bigint PRIMARY KEY CHECK (id = 1),
  bytes bigint NOT NULL
);

CREATE TABLE categories (
  id   bigint PRIMARY KEY, -- chosen by callers
  name text   NOT NULL
);

CREATE TABLE orders (
  id         bigint   GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  pet_id     bigint   NOT NULL, -- no foreign key: an order outlives its pet
  status     smallint NOT NULL CHECK (status BETWEEN 0 AND 3), -- placed, approved, delivered, cancelled
  reference  text     COLLATE "C" NOT NULL, -- empty: none
  note       text     NOT NULL, -- empty: none
  created_at bigint   NOT NULL,
  updated_at bigint   NOT NULL
);
CREATE INDEX orders_by_status        ON orders (status, id);
CREATE INDEX orders_by_pet           ON orders (pet_id, status, id);
CREATE INDEX orders_by_reference     ON orders (reference, status, id) WHERE reference <> '';
CREATE INDEX orders_by_pet_reference ON orders (pet_id, reference, status, id) WHERE reference <> '';
-- A pet has at most one open order.
CREATE UNIQUE INDEX orders_open ON orders (pet_id) WHERE status <= 1;

-- Idempotency records: the results of writes that clients may retry.
CREATE TABLE idempotency_records (
  key_id     bigint NOT NULL,
  operation  text   COLLATE "C" NOT NULL,
  token      text   COLLATE "C" NOT NULL,
  body_hash  bytea  NOT NULL,
  result     text   NOT NULL, -- the pet, photo or order as JSON
  created_at bigint NOT NULL,
  PRIMARY KEY (key_id, operation, token)
);
CREATE INDEX idempotency_records_by_age ON idempotency_records (created_at);

CREATE TABLE keys (
  id           bigint   GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name         text     NOT NULL,
  plan         text     NOT NULL,
  per_minute   bigint   NOT NULL,
  per_day      bigint   NOT NULL,
  permissions  smallint NOT NULL, -- bits: 1 read, 2 write, 4 admin, 8 pets:read, 16 pets:write, 32 orders:read, 64 orders:write
  environment  text     COLLATE "C" NOT NULL,
  created_at   bigint   NOT NULL,
  expires_at   bigint   NOT NULL,
  networks     text     NOT NULL, -- separated by commas; '' is anywhere
  last_used    bigint   NOT NULL,
  revoked_at   bigint   NOT NULL,
  unbanned_at  bigint   NOT NULL,
  suspended_at bigint   NOT NULL
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

-- A value that changes with every change of a key or secret, in the same transaction: a
-- server learns from one row whether the keys it knows are still the same. It is random,
-- because a counter in a store that went back to a backup could return to a value it had
-- with other keys. Triggers set it, so that no change can miss it.
CREATE TABLE keys_version (
  id      smallint PRIMARY KEY CHECK (id = 1),
  version text     NOT NULL
);

INSERT INTO keys_version VALUES (1, gen_random_uuid());

-- +goose StatementBegin
CREATE FUNCTION animalstore_keys_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE keys_version SET version = gen_random_uuid();
  RETURN NULL;
END
$$;
-- +goose StatementEnd

-- They run before the statement, so that a transaction waiting for the version's row holds
-- no new secret that the row's owner could be waiting for.
--
-- All columns but last_used, which changes all the time and decides nothing. A new key
-- comes with a secret.
CREATE TRIGGER keys_changed BEFORE UPDATE OF id, name, plan, per_minute, per_day, permissions, environment, created_at, expires_at, networks, revoked_at, unbanned_at, suspended_at OR DELETE OR TRUNCATE ON keys
  FOR EACH STATEMENT EXECUTE FUNCTION animalstore_keys_changed();
CREATE TRIGGER keys_changed BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON key_secrets
  FOR EACH STATEMENT EXECUTE FUNCTION animalstore_keys_changed();

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

-- Events that are numbered, and so visible to readers. Ids are consecutive. The newest
-- row is never deleted, so the next id follows from it.
CREATE TABLE events (
  id         bigint   PRIMARY KEY,
  type       smallint NOT NULL, -- index in animalstore.EventTypes
  subject_id bigint   NOT NULL, -- of the resource that the type names
  pet_id     bigint   NOT NULL, -- of the pet itself, or of the photo's or order's pet; 0: none
  created_at bigint   NOT NULL,
  key_id     bigint   NOT NULL, -- who made the change; 0 is the command line, -1 the service
  request_id text     NOT NULL,
  data       text     NOT NULL  -- the resource as JSON
);
-- For the events of a pet with its photos and orders, and of any other resource.
CREATE INDEX events_by_pet     ON events (pet_id, id) WHERE pet_id <> 0;
CREATE INDEX events_by_subject ON events (subject_id, id) WHERE type > 2; -- all but pets

-- A change adds its events here, in its transaction. They get their ids after that was
-- committed: a sequence is advanced before a commit, so a reader of this table that
-- continues after the last number it saw would miss the changes that commit later.
CREATE TABLE event_queue (
  seq        bigint   GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  type       smallint NOT NULL,
  subject_id bigint   NOT NULL,
  pet_id     bigint   NOT NULL,
  created_at bigint   NOT NULL,
  key_id     bigint   NOT NULL,
  request_id text     NOT NULL,
  data       text     NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);

CREATE TABLE webhooks (
  id               bigint   GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  url              text     NOT NULL,
  types            text     NOT NULL, -- comma-separated patterns
  description      text     NOT NULL,
  state            smallint NOT NULL CHECK (state BETWEEN 0 AND 2), -- active, paused, disabled
  disabled_reason  text     NOT NULL,
  secret           text     NOT NULL, -- readable, because it signs
  old_secret       text     NOT NULL, -- signs too until old_secret_until
  old_secret_until bigint   NOT NULL,
  created_at       bigint   NOT NULL,
  delivered_at     bigint   NOT NULL, -- the last success
  failed_at        bigint   NOT NULL, -- the last failure
  failing_since    bigint   NOT NULL, -- the first failure since the last success
  from_event       bigint   NOT NULL, -- it gets events with higher ids than this
  to_event         bigint   NOT NULL  -- up to this, unless it is 0
);

-- One row for each event and each webhook that gets it. The data is a copy, so that
-- events can be dropped before they are delivered.
CREATE TABLE deliveries (
  id           bigint   GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  webhook_id   bigint   NOT NULL, -- no foreign key: rows of a deleted webhook are dropped later
  event_id     bigint   NOT NULL, -- 0 is a ping
  type         smallint NOT NULL, -- index in animalstore.EventTypes; -1 is a ping
  event_time   bigint   NOT NULL,
  data         text     NOT NULL,
  state        smallint NOT NULL CHECK (state BETWEEN 0 AND 2), -- pending, delivered, failed
  tries        bigint   NOT NULL, -- since it was created or last retried by hand
  retries      bigint   NOT NULL DEFAULT 0, -- by hand
  attempts     text     NOT NULL, -- the last ones, as JSON
  due_at       bigint   NOT NULL,
  -- No other server may send it before this time; 0 is not claimed. Leases aren't copied
  -- when a store is moved or restored.
  leased_until bigint   NOT NULL DEFAULT 0,
  created_at   bigint   NOT NULL
);
CREATE INDEX deliveries_by_webhook ON deliveries (webhook_id, state, id);
CREATE INDEX deliveries_due        ON deliveries (webhook_id, due_at, id) WHERE state = 0;
CREATE INDEX deliveries_pings      ON deliveries (webhook_id, due_at, id) WHERE state = 0 AND event_id = 0;
CREATE INDEX deliveries_leased     ON deliveries (webhook_id, leased_until) WHERE leased_until <> 0;

-- The last event that was turned into deliveries, in one row or, at first, none.
CREATE TABLE webhook_position (
  id       bigint PRIMARY KEY CHECK (id = 1),
  event_id bigint NOT NULL
);

-- Who is signed in to the console. It has no reference to key_secrets: a session whose
-- secret is gone is refused, and deleted once it expires.
CREATE TABLE console_sessions (
  hash       bytea  PRIMARY KEY CHECK (length(hash) = 32), -- SHA-256 of the token
  secret     bytea  NOT NULL CHECK (length(secret) = 32), -- SHA-256 of the key's secret
  expires_at bigint NOT NULL
);
CREATE INDEX console_sessions_by_expiry ON console_sessions (expires_at);

-- Forms that were sent and must not be sent again.
CREATE TABLE console_forms (
  hash    bytea  PRIMARY KEY CHECK (length(hash) = 32), -- SHA-256 of the form's token
  used_at bigint NOT NULL
);
CREATE INDEX console_forms_by_age ON console_forms (used_at);

-- Requests that got an error response.
CREATE TABLE failures (
  id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  time        bigint NOT NULL,
  request_id  text   COLLATE "C" NOT NULL,
  key_id      bigint NOT NULL,
  method      text   NOT NULL,
  route       text   NOT NULL, -- '' if the path matched none
  path        text   NOT NULL,
  status      bigint NOT NULL,
  code        text   COLLATE "C" NOT NULL,
  message     text   NOT NULL,
  duration_ms bigint NOT NULL
);
-- One of each is kept. With a plain key_id, the planner might use this index for lists.
CREATE UNIQUE INDEX failures_by_second ON failures ((time / 1000), (key_id + 0), code);
CREATE INDEX failures_by_key     ON failures (key_id, id);
CREATE INDEX failures_by_code    ON failures (code, id);
CREATE INDEX failures_by_request ON failures (request_id, id);
CREATE INDEX failures_by_time    ON failures (time);

-- How many rows failures has, because counting a million takes long.
CREATE TABLE failure_total (
  id     bigint PRIMARY KEY CHECK (id = 1),
  stored bigint NOT NULL
);

INSERT INTO failure_total VALUES (1, 0);
