package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"

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

// TestIdleReadersLetTheWALRestart: readers that have read once don't keep the WAL from
// restarting.
func TestIdleReadersLetTheWALRestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	d := mustOpen(t, path, Options{Serve: true})
	name := strings.Repeat("x", animalstore.MaxNameLength)
	forEachReader(d, func() {
		if _, err := d.Pets(t.Context(), db.PetQuery{Limit: 1}); err != nil {
			t.Fatal(err)
		}
	})
	for range 3000 { // some pages each
		if _, _, err := d.CreatePet(t.Context(), animalstore.NewPet{Name: name, CategoryID: 1}, nil); err != nil {
			t.Fatal(err)
		}
	}
	wal, err := os.Stat(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	if pages := wal.Size() / 4096; pages > 2*checkpointPages {
		t.Errorf("the WAL grew to %d pages, want about %d", pages, checkpointPages)
	}
}

// TestCloseWaitsForReaders: Close returns only after the reads that have begun, and
// later ones fail.
func TestCloseWaitsForReaders(t *testing.T) {
	d := mustOpen(t, filepath.Join(t.TempDir(), "store.db"), Options{Serve: true})
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
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		_, err := d.Pets(t.Context(), db.PetQuery{Limit: 1})
		if errors.Is(err, errClosed) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("a read after Close: got %v, want %v", err, errClosed)
		}
	}
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
