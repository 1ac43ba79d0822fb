//go:build unix

package postgres

import (
	"context"
	"os"
	"testing"

	"animalstore/internal/db"
	"animalstore/internal/db/dbtest"
	"animalstore/internal/db/postgres/pgtest"
	"animalstore/internal/testenv"
)

func TestMain(m *testing.M) {
	code := m.Run()
	pgtest.Close()
	os.Exit(code)
}

func TestContract_Slow(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, emptied(t))
}

// emptied returns a function that returns the same database each time, without its rows.
func emptied(t *testing.T) func(t *testing.T) db.DB {
	d := mustOpen(t, pgtest.Shared(t).NewDatabase(t, ""), Options{Timeout: testenv.Deadline})
	return func(t *testing.T) db.DB {
		if _, err := d.pool.Exec(t.Context(), pgtest.DeleteAll); err != nil {
			t.Fatal(err)
		}
		return d
	}
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
