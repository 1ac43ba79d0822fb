package api_test

import (
	"path/filepath"
	"testing"
)

// databaseEngine provides the databases of the tests.
type databaseEngine struct {
	name        string                  // as GET /v1/status shows it
	newDatabase func(testing.TB) string // the URL of an empty database
}

var sqliteEngine = databaseEngine{"sqlite", func(t testing.TB) string {
	t.Helper()
	return "sqlite:" + filepath.Join(t.TempDir(), "store.db")
}}

// engine is the one that tests run on now.
var engine = sqliteEngine
