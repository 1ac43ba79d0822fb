package sqlite

import (
	"errors"
	"testing"

	"animalstore"

	"animalstore/internal/db"
	"animalstore/internal/testenv"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// forEachReader calls f, which must read once, for each reader: idle readers are used in the
// order in which they became idle.
func forEachReader(d *DB, f func()) {
	for range d.nread {
		f()
	}
}

// TestCloseWaitsForReaders: Close returns only after the reads that have begun, and
// later ones fail.
func TestCloseWaitsForReaders(t *testing.T) {
	d := newStore(t)
	began, end, closed := make(chan struct{}), make(chan struct{}), make(chan error)
	read := make(chan error)
	go func() {
		read <- d.read(t.Context(), func(c *sqlite.Conn) error {
			close(began)
			<-end
			return sqlitex.Execute(c, "SELECT max(id) FROM pets", nil)
		})
	}()
	<-began
	go func() { closed <- d.Close() }()
	testenv.Eventually(t, "a read after Close fails", func() bool {
		_, err := d.Pets(t.Context(), animalstore.PetQuery{}, db.Page{Limit: 1})
		return errors.Is(err, errClosed)
	})
	select {
	case err := <-closed:
		t.Fatalf("Close returned %v while a read was running", err)
	default:
	}
	close(end)
	if err := <-read; err != nil {
		t.Errorf("the read that had begun: %v", err)
	}
	if err := <-closed; err != nil {
		t.Errorf("Close: %v", err)
	}
}
