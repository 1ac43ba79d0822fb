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
CREATE TRIGGER keys_updated AFTER UPDATE OF id, name, plan, per_minute, per_day, permissions, environment, created_at, expires_at, revoked_at, unbanned_at ON keys
  BEGIN UPDATE keys_version SET version = hex(randomblob(16)); END;
CREATE TRIGGER keys_deleted AFTER DELETE ON keys
  BEGIN UPDATE keys_version SET version = hex(randomblob(16)); END;
CREATE TRIGGER key_secrets_inserted AFTER INSERT ON key_secrets
  BEGIN UPDATE keys_version SET version = hex(randomblob(16)); END;
CREATE TRIGGER key_secrets_updated AFTER UPDATE ON key_secrets
  BEGIN UPDATE keys_version SET version = hex(randomblob(16)); END;
CREATE TRIGGER key_secrets_deleted AFTER DELETE ON key_secrets
  BEGIN UPDATE keys_version SET version = hex(randomblob(16)); END;
