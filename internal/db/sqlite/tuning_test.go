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
		cache       bool
	}{
		{Tuning{}, 2, 1024, true},
		{Tuning{NoSync: true}, 1, 1024, true},
		{Tuning{MaxBatch: 1}, 2, 1, true},
		{Tuning{NoPetCache: true}, 2, 1024, false},
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
		if err != nil || got != test.synchronous || d.writer.most != test.batch || (d.pets != nil) != test.cache {
			t.Errorf("%+v: got synchronous %d (%v), batches of %d and a cache: %v, want %d, %d and %v", test.tuning, got, err, d.writer.most, d.pets != nil, test.synchronous, test.batch, test.cache)
		}
	}
}
