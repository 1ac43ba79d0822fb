//go:build unix

package postgres

import (
	"context"
	"os"
	"testing"
	"time"

	"animalstore/internal/db"
	"animalstore/internal/db/dbtest"
	"animalstore/internal/db/postgres/pgtest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	pgtest.Close()
	os.Exit(code)
}

// patient is for tests of what comes out, on a machine that may be busy.
const patient = time.Minute

func TestContract(t *testing.T) {
	server := pgtest.Shared(t)
	template := server.NewDatabase(t, "")
	mustOpen(t, template, Options{Timeout: patient}).Close()
	dbtest.Run(t, func(t *testing.T) db.DB {
		return mustOpen(t, server.NewDatabase(t, pgtest.Name(template)), Options{Timeout: patient})
	})
}

// mustOpen opens a database and closes it when the test ends.
func mustOpen(t *testing.T, url string, opts Options) *DB {
	t.Helper()
	d, err := Open(context.Background(), url, opts)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return d
}
