-- +goose Up

-- Events that are numbered, and so visible to readers. Ids are consecutive. The newest
-- row is never deleted, so the next id follows from it.
CREATE TABLE events (
  id         bigint   PRIMARY KEY,
  type       smallint NOT NULL, -- index in animalstore.EventTypes
  subject_id bigint   NOT NULL, -- of the resource that the type names
  created_at bigint   NOT NULL,
  key_id     bigint   NOT NULL, -- who made the change; 0 is the command line
  request_id text     NOT NULL,
  data       text     NOT NULL  -- the resource as JSON
);
-- For the events of one resource.
CREATE INDEX events_by_subject ON events (subject_id, id);

-- A change adds its events here, in its transaction. They get their ids after that was
-- committed: a sequence is advanced before a commit, so a reader of this table that
-- continues after the last number it saw would miss the changes that commit later.
CREATE TABLE event_queue (
  seq        bigint   GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  type       smallint NOT NULL,
  subject_id bigint   NOT NULL,
  created_at bigint   NOT NULL,
  key_id     bigint   NOT NULL,
  request_id text     NOT NULL,
  data       text     NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);

-- Versions before this one don't add events: they may not change anything any more. The
-- code makes them respond that the store is unavailable.
-- +goose StatementBegin
CREATE FUNCTION animalstore_refuse_older() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'a newer animalstore has updated this database, where every change has to add an event: run that version'
    USING ERRCODE = 'read_only_sql_transaction';
END
$$;
-- +goose StatementEnd

CREATE TRIGGER refuse_older BEFORE INSERT OR UPDATE OR DELETE ON pets
  FOR EACH STATEMENT WHEN (current_setting('animalstore.events', true) IS DISTINCT FROM 'on') EXECUTE FUNCTION animalstore_refuse_older();
CREATE TRIGGER refuse_older BEFORE INSERT OR UPDATE OR DELETE ON orders
  FOR EACH STATEMENT WHEN (current_setting('animalstore.events', true) IS DISTINCT FROM 'on') EXECUTE FUNCTION animalstore_refuse_older();
CREATE TRIGGER refuse_older BEFORE INSERT OR UPDATE OR DELETE ON categories
  FOR EACH STATEMENT WHEN (current_setting('animalstore.events', true) IS DISTINCT FROM 'on') EXECUTE FUNCTION animalstore_refuse_older();
CREATE TRIGGER refuse_older BEFORE INSERT OR UPDATE OR DELETE ON keys
  FOR EACH STATEMENT WHEN (current_setting('animalstore.events', true) IS DISTINCT FROM 'on') EXECUTE FUNCTION animalstore_refuse_older();
CREATE TRIGGER refuse_older BEFORE INSERT OR UPDATE OR DELETE ON key_secrets
  FOR EACH STATEMENT WHEN (current_setting('animalstore.events', true) IS DISTINCT FROM 'on') EXECUTE FUNCTION animalstore_refuse_older();
CREATE TRIGGER refuse_older BEFORE INSERT OR UPDATE OR DELETE ON limit_states
  FOR EACH STATEMENT WHEN (current_setting('animalstore.events', true) IS DISTINCT FROM 'on') EXECUTE FUNCTION animalstore_refuse_older();
