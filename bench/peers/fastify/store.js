// The database of the benchmark's Fastify: the same columns as ours, and indexes
// for lists of a status and for finding pets by name.
import Database from 'better-sqlite3'

export const schema = `
  CREATE TABLE pets (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    name        TEXT    NOT NULL,
    category_id INTEGER NOT NULL,
    status      TEXT    NOT NULL
  ) STRICT;
  CREATE TABLE events (
    id         INTEGER PRIMARY KEY,
    type       TEXT    NOT NULL,
    subject_id INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    data       TEXT    NOT NULL -- the pet as JSON
  ) STRICT;
  CREATE INDEX events_by_subject ON events (subject_id);
  CREATE TABLE keys (
    hash BLOB PRIMARY KEY -- SHA-256
  ) STRICT, WITHOUT ROWID;
`

// Created after the rows, which is faster. The first covers whole rows, like ours.
export const indexes = `
  CREATE INDEX pets_by_status ON pets (status, id, category_id, name);
  CREATE INDEX pets_by_name ON pets (lower(name), id);
`

// open sets what better-sqlite3's documentation recommends for a server, with
// the durability of every other server: a commit is on disk.
export function open(file) {
  const db = new Database(file, { timeout: 10000 })
  db.pragma('journal_mode = WAL')
  db.pragma('synchronous = FULL')
  db.pragma('cache_size = -32000')
  db.pragma('temp_store = MEMORY')
  return db
}
