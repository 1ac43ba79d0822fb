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
-- events can be dropped before they are delivered.
CREATE TABLE deliveries (
  id           INTEGER PRIMARY KEY AUTOINCREMENT,
  webhook_id   INTEGER NOT NULL, -- no foreign key: rows of a deleted webhook are dropped later
  event_id     INTEGER NOT NULL, -- 0 is a ping
  type         INTEGER NOT NULL, -- index in animalstore.EventTypes; -1 is a ping
  event_time   INTEGER NOT NULL,
  data         TEXT    NOT NULL,
  state        INTEGER NOT NULL CHECK (state BETWEEN 0 AND 2), -- pending, delivered, failed
  tries        INTEGER NOT NULL,
  attempts     TEXT    NOT NULL, -- the last ones, as JSON
  due_at       INTEGER NOT NULL,
  leased_until INTEGER NOT NULL, -- nobody else sends it until then; 0 is not claimed
  created_at   INTEGER NOT NULL
) STRICT;

CREATE INDEX deliveries_by_webhook ON deliveries (webhook_id, state, id);
CREATE INDEX deliveries_due        ON deliveries (webhook_id, due_at) WHERE state = 0;
CREATE INDEX deliveries_pings      ON deliveries (webhook_id, due_at) WHERE state = 0 AND event_id = 0;
CREATE INDEX deliveries_leased     ON deliveries (webhook_id, leased_until) WHERE leased_until <> 0;

-- The last event that was turned into deliveries, in one row or, at first, none.
CREATE TABLE webhook_position (
  id       INTEGER PRIMARY KEY CHECK (id = 1),
  event_id INTEGER NOT NULL
) STRICT;
