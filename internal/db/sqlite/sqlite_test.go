package sqlite

import (
	"path/filepath"
	"testing"
	"time"

	"animalstore/internal/db"
	"animalstore/internal/db/dbtest"
)

func TestContract(t *testing.T) {
	dbtest.Run(t, func(t *testing.T) db.DB { return newStore(t) })
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

// TestBackupID: the times of backups only ever grow, until the store gets a new id.
func TestBackupID(t *testing.T) {
	d := mustOpen(t, filepath.Join(t.TempDir(), "store.db"), Options{})
	at := time.Date(2026, 11, 19, 2, 0, 0, 0, time.UTC)
	never := time.UnixMilli(0)
	id := wantBackupID(t, d, db.Begun{Directory: never, Remote: never})
	for _, begins := range []struct{ at, want db.Begun }{
		{db.Begun{Directory: at}, db.Begun{Directory: at, Remote: never}},
		{db.Begun{Directory: at.Add(-time.Hour), Remote: at.Add(time.Hour)}, db.Begun{Directory: at, Remote: at.Add(time.Hour)}},
		{db.Begun{Remote: at}, db.Begun{Directory: at, Remote: at.Add(time.Hour)}},
	} {
		if err := d.BeginBackup(t.Context(), begins.at); err != nil {
			t.Fatal(err)
		}
		wantBackupID(t, d, begins.want)
	}
	renewed, err := d.RenewID(t.Context(), id)
	if err != nil || renewed == id {
		t.Errorf("got the id %s, %v, want another than %s", renewed, err, id)
	}
	if again, err := d.RenewID(t.Context(), id); err != nil || again != renewed {
		t.Errorf("got the id %s, %v, want still %s", again, err, renewed)
	}
	if got := wantBackupID(t, d, db.Begun{Directory: never, Remote: never}); got != renewed {
		t.Errorf("got the id %s, want %s", got, renewed)
	}
}

func wantBackupID(t *testing.T, d *DB, latest db.Begun) (id string) {
	t.Helper()
	id, got, err := d.BackupID(t.Context())
	if err != nil || !got.Directory.Equal(latest.Directory) || !got.Remote.Equal(latest.Remote) || len(id) != 12 {
		t.Errorf("got %q, %s, %v, want %s", id, got, err, latest)
	}
	return id
}
