package sqlite

import (
	"path/filepath"
	"testing"

	"animalstore/internal/db"
	"animalstore/internal/db/dbtest"
	"animalstore/internal/testenv"
)

func TestContract(t *testing.T) {
	dbtest.Run(t, func(t *testing.T) db.DB { return newStore(t) })
}

// TestContractOfCommands: the store of a command that runs alongside a server.
func TestContractOfCommands(t *testing.T) {
	testenv.Slow(t)
	dbtest.Run(t, func(t *testing.T) db.DB {
		return mustOpen(t, filepath.Join(t.TempDir(), "store.db"), Options{NoSync: true})
	})
}

// newStore opens a new file for serving. No test cuts the power, so it doesn't wait for the
// disk.
func newStore(t *testing.T) *DB {
	t.Helper()
	return mustOpen(t, filepath.Join(t.TempDir(), "store.db"), Options{Serve: true, NoSync: true})
}

// mustOpen opens a file and closes it when the test ends.
func mustOpen(t *testing.T, path string, opts Options) *DB {
	t.Helper()
	d, err := Open(t.Context(), path, opts)
	if err != nil {
		t.Fatalf("Open(%s): %v", path, err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return d
}
