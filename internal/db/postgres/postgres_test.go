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

// patient is a timeout for tests that don't test timeouts, on a busy machine.
const patient = time.Minute

func TestContract(t *testing.T) {
	d := mustOpen(t, pgtest.Shared(t).NewDatabase(t, ""), Options{Timeout: patient})
	dbtest.Run(t, func(t *testing.T) db.DB {
		_, err := d.pool.Exec(t.Context(), pgtest.DeleteAll)
		if err != nil {
			t.Fatal(err)
		}
		return d
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
