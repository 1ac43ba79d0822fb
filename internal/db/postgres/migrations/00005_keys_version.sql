-- +goose Up

-- A value that changes with every change of a key or secret, in the same transaction: a
-- server learns from one row whether the keys it knows are still the same. It is random,
-- because a counter in a store that went back to a backup could return to a value it had
-- with other keys. Triggers set it, so that no change can miss it, not even one by a server
-- of an older version.
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

-- They run before the statement, so whoever waits for the row of the version hasn't added a
-- secret yet that its owner could wait for in turn.
--
-- All columns but last_used, which changes all the time and decides nothing. A new key
-- comes with a secret.
CREATE TRIGGER keys_changed BEFORE UPDATE OF id, name, plan, per_minute, per_day, permissions, environment, created_at, expires_at, revoked_at, unbanned_at OR DELETE OR TRUNCATE ON keys
  FOR EACH STATEMENT EXECUTE FUNCTION animalstore_keys_changed();
CREATE TRIGGER keys_changed BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON key_secrets
  FOR EACH STATEMENT EXECUTE FUNCTION animalstore_keys_changed();
