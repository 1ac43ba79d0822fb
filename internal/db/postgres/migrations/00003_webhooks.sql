-- +goose Up

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
  tries        bigint   NOT NULL,
  attempts     text     NOT NULL, -- the last ones, as JSON
  due_at       bigint   NOT NULL,
  leased_until bigint   NOT NULL, -- nobody else sends it until then; 0 is not claimed
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
