package api_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"animalstore/internal/db/sqlite"
)

// databaseEngine provides the databases of the tests.
type databaseEngine struct {
	name        string                  // as GET /v1/status shows it
	newDatabase func(testing.TB) string // the URL of an empty database
}

var sqliteEngine = databaseEngine{"sqlite", func(t testing.TB) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "store.db")
	if err := os.WriteFile(file, emptyStore(), 0o600); err != nil {
		t.Fatal(err)
	}
	return "sqlite:" + file
}}

// emptyStore is a database file with tables and nothing in them: a copy is quicker than to
// create them.
var emptyStore = sync.OnceValue(func() []byte {
	dir := must(os.MkdirTemp("", "animalstore-api-test"))
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "store.db")
	if err := must(sqlite.Open(context.Background(), file, sqlite.Options{NoSync: true})).Close(); err != nil {
		panic(err)
	}
	return must(os.ReadFile(file))
})

// engine is the one that tests run on now.
var engine = sqliteEngine
