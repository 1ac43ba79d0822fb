-- +goose Up

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
