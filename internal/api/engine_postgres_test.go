//go:build unix

package api_test

import (
	"context"
	"sync"
	"testing"

	"animalstore/internal/db/postgres"
	"animalstore/internal/db/postgres/pgtest"
)

// template is the name of a database with tables and nothing in them. A copy is
// quicker than the migrations.
var template struct {
	sync.Mutex
	name string
}

func init() {
	postgresEngine.newDatabase = func(t testing.TB) string {
		t.Helper()
		server := pgtest.Shared(t)
		template.Lock()
		defer template.Unlock()
		if template.name == "" {
			url := server.NewDatabase(t, "")
			store, err := postgres.Open(context.Background(), url, postgres.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
			template.name = pgtest.Name(url)
		}
		return server.NewDatabase(t, template.name)
	}
	postgresEngine.exec = func(t testing.TB, url, statement string) {
		t.Helper()
		pgtest.Shared(t).MustExec(t, pgtest.Name(url), statement)
	}
	stopPostgres = pgtest.Close
}
