package api_test

import (
	"path/filepath"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// databaseEngine provides the databases of the tests.
type databaseEngine struct {
	name        string
	newDatabase func(testing.TB) string // the URL of an empty database
	exec        func(t testing.TB, url, statement string)
}

var sqliteEngine = databaseEngine{
	name: "SQLite",
	newDatabase: func(t testing.TB) string {
		t.Helper()
		return "sqlite:" + filepath.Join(t.TempDir(), "store.db")
	},
	exec: func(t testing.TB, url, statement string) {
		t.Helper()
		conn, err := sqlite.OpenConn(strings.TrimPrefix(url, "sqlite:"), sqlite.OpenReadWrite)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := sqlitex.ExecuteTransient(conn, statement, nil); err != nil {
			t.Fatal(err)
		}
	},
}

// engine is the one that tests run on now. TestMain runs them all on each.
var engine = sqliteEngine

// postgresEngine has no newDatabase where PostgreSQL isn't supported.
var postgresEngine = databaseEngine{name: "PostgreSQL"}

// sqliteOnly skips a test that is about SQLite, or that would only repeat itself
// on another engine.
func sqliteOnly(t testing.TB, why string) {
	t.Helper()
	if engine.name != sqliteEngine.name {
		t.Skip("SQLite only: " + why)
	}
}
