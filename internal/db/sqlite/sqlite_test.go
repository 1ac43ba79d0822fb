package sqlite

import (
	"path/filepath"
	"testing"

	"animalstore/internal/db"
	"animalstore/internal/db/dbtest"
	"animalstore/internal/testenv"
)

func TestContract(t *testing.T) {
	for name, opts := range map[string]Options{"serving": {Serve: true}, "alongside a server": {}} {
		t.Run(name, func(t *testing.T) {
			if !opts.Serve {
				testenv.Slow(t)
			}
			dbtest.Run(t, func(t *testing.T) db.DB {
				return mustOpen(t, filepath.Join(t.TempDir(), "store.db"), opts)
			})
		})
	}
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
