package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	sqlitedb "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// sqliteFile creates a SQLite file with a script.
func sqliteFile(t *testing.T, name, script string) (path string) {
	path = filepath.Join(t.TempDir(), name)
	conn := must(sqlitedb.OpenConn(path))
	defer func() { check(conn.Close()) }()
	check(sqlitex.ExecuteScript(conn, script, nil))
	return path
}

// An older build gets our rows in its own tables, limited to the tables and columns it
// has, and the next id is the same.
func TestOlderTablesGetOurRows(t *testing.T) {
	ours := sqliteFile(t, "ours.db", `
		CREATE TABLE pets (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, color TEXT NOT NULL);
		CREATE TABLE keys (hash BLOB PRIMARY KEY, plan TEXT NOT NULL) WITHOUT ROWID;
		CREATE TABLE events (id INTEGER PRIMARY KEY AUTOINCREMENT);
		INSERT INTO pets VALUES (7, 'Rex', 'red'), (9, 'Ada', 'green'), (30, 'gone', 'blue');
		DELETE FROM pets WHERE id = 30;
		INSERT INTO keys VALUES (x'02', 'pro'), (x'01', 'free');
		INSERT INTO events VALUES (5)`)
	older := sqliteFile(t, "older.db", `
		CREATE TABLE pets (name TEXT NOT NULL, id INTEGER PRIMARY KEY AUTOINCREMENT, size INTEGER NOT NULL DEFAULT 3);
		CREATE TABLE keys (hash BLOB PRIMARY KEY, plan TEXT NOT NULL) WITHOUT ROWID;
		CREATE TABLE dropped (id INTEGER PRIMARY KEY);
		INSERT INTO keys VALUES (x'03', 'owner');
		INSERT INTO dropped VALUES (1)`)
	if err := attempt(func() { copyRows(older, ours) }); err != nil {
		t.Fatal(err)
	}
	conn := must(sqlitedb.OpenConn(older))
	defer conn.Close()
	for _, c := range []struct {
		query string
		want  []string
	}{
		{"SELECT id || name || size FROM pets ORDER BY id", []string{"7Rex3", "9Ada3"}},
		{"SELECT hex(hash) || plan FROM keys ORDER BY hash", []string{"01free", "02pro"}},
		{"SELECT id FROM dropped", nil},
		{"SELECT name || seq FROM sqlite_sequence", []string{"pets30"}},
		{"INSERT INTO pets (name) VALUES ('next') RETURNING id", []string{"31"}},
		{"SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name", []string{"dropped", "keys", "pets", "sqlite_sequence"}},
	} {
		if got := queryNames(conn, c.query); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.query, got, c.want)
		}
	}
}

// A store seeded for other tables is never mistaken for one with these.
func TestFingerprintCoversAllFiles(t *testing.T) {
	root := t.TempDir()
	seen := map[string]string{}
	for _, file := range []string{"schema.sql", "schema2.sql", "schema3.sql"} {
		for _, text := range []string{"one", "two"} {
			check(os.WriteFile(filepath.Join(root, file), []byte(text), 0o600))
			step := fmt.Sprintf("%s of %s", text, file)
			id := fingerprint(root, "schema*.sql")
			if before, ok := seen[id]; ok {
				t.Errorf("%s has the fingerprint of %s", step, before)
			}
			seen[id] = step
		}
	}
	if err := attempt(func() { fingerprint(root, "other*.sql") }); err == nil {
		t.Error("a pattern that matches no file: got no error")
	}
}
