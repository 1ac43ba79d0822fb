package sqlite

import (
	"path/filepath"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// TestTuning: each field takes away what it says, and nothing is taken away
// without it.
func TestTuning(t *testing.T) {
	for _, test := range []struct {
		tuning      Tuning
		synchronous int64 // 2 is FULL, 1 is NORMAL
		batch       int
	}{
		{Tuning{}, 2, 1024},
		{Tuning{NoSync: true}, 1, 1024},
		{Tuning{MaxBatch: 1}, 2, 1},
	} {
		d, err := Open(t.Context(), filepath.Join(t.TempDir(), "store.db"), Options{Serve: true, Tuning: test.tuning})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		var got int64
		err = d.writer.do(t.Context(), func(c *sqlite.Conn) error {
			got, err = sqlitex.ResultInt64(c.Prep("PRAGMA synchronous"))
			return err
		})
		if err != nil || got != test.synchronous || d.writer.most != test.batch {
			t.Errorf("%+v: got synchronous %d (%v) and batches of %d, want %d and %d", test.tuning, got, err, d.writer.most, test.synchronous, test.batch)
		}
	}
}
