//go:build unix

package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"animalstore/internal/db"

	"zombiezen.com/go/sqlite"
)

// TestNothingIsAcknowledgedWithoutWAL: a server stops instead of acknowledging a write that
// went to a WAL that was removed or replaced.
func TestNothingIsAcknowledgedWithoutWAL(t *testing.T) {
	for name, lose := range map[string]func(wal string) error{
		"removed":  os.Remove,
		"replaced": func(wal string) error { return os.Rename(wal+".other", wal) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "store.db")
			wal := path + "-wal"
			if err := os.WriteFile(wal+".other", nil, 0o600); err != nil {
				t.Fatal(err)
			}
			reasons := make(chan error, 1)
			d, err := Open(t.Context(), path, Options{Serve: true, Fatal: func(err error) { reasons <- err }})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close() // which fails without its WAL
			err = d.writer.do(t.Context(), func(c *sqlite.Conn) error {
				return errors.Join(insertNamed("Rex", 0)(c), lose(wal))
			})
			if !errors.Is(err, db.ErrOutcomeUnknown) {
				t.Errorf("got error %v, want one that the outcome is unknown", err)
			}
			<-reasons
		})
	}
}
