package sqlite

import (
	"path/filepath"
	"testing"

	"animalstore/internal/db"
	"animalstore/internal/db/dbtest"
)

func TestContract(t *testing.T) {
	for name, opts := range map[string]Options{"serving": {Serve: true}, "alongside a server": {}} {
		t.Run(name, func(t *testing.T) {
			if !opts.Serve {
				withoutRaceDetector(t)
			}
			dbtest.Run(t, func(t *testing.T) db.DB {
				return mustOpen(t, filepath.Join(t.TempDir(), "store.db"), opts)
			})
		})
	}
}

// withoutRaceDetector leaves a test that takes long with the race detector, which would find
// nothing that it doesn't find in others, to make test-release and make soak.
func withoutRaceDetector(t *testing.T) {
	t.Helper()
	if dbtest.RaceDetector {
		t.Skip("takes long with the race detector: run it without")
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
