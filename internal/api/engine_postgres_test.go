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

// unused are databases that a test has left.
var unused struct {
	sync.Mutex
	urls []string
}

func takeUnused() (url string, found bool) {
	unused.Lock()
	defer unused.Unlock()
	last := len(unused.urls) - 1
	if last < 0 {
		return "", false
	}
	url, unused.urls = unused.urls[last], unused.urls[:last]
	return url, true
}

func createFromTemplate(t testing.TB, server *pgtest.Server) string {
	t.Helper()
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

func init() {
	postgresEngine.newDatabase = func(t testing.TB) string {
		t.Helper()
		server := pgtest.Shared(t)
		url, found := takeUnused()
		if found {
			server.MustExec(t, pgtest.Name(url), pgtest.DeleteAll)
		} else {
			url = createFromTemplate(t, server)
		}
		t.Cleanup(func() { // when the test's server has stopped
			unused.Lock()
			defer unused.Unlock()
			unused.urls = append(unused.urls, url)
		})
		return url
	}
	postgresEngine.exec = func(t testing.TB, url, statement string) {
		t.Helper()
		pgtest.Shared(t).MustExec(t, pgtest.Name(url), statement)
	}
	stopPostgres = pgtest.Close
}
