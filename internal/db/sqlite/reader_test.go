package sqlite

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"animalstore"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// settle reads with every reader until each keeps a transaction open.
func settle(t *testing.T, d *DB) {
	t.Helper()
	for range 3 * d.nread {
		if err := d.readOwn(t.Context(), func(c *sqlite.Conn) error {
			return sqlitex.Execute(c, "SELECT max(id) FROM pets", nil)
		}); err != nil {
			t.Fatal(err)
		}
	}
	if n := keeping(d); n != d.nread {
		t.Fatalf("%d of %d readers keep a transaction open, want all", n, d.nread)
	}
}

// keeping counts the readers that keep a transaction open.
func keeping(d *DB) (n int) {
	for range d.nread {
		r := <-d.readers
		if r.snapshot != !r.conn.AutocommitEnabled() {
			panic("a reader does not know what it keeps open")
		}
		if r.snapshot {
			n++
		}
		d.readers <- r
	}
	return n
}

// TestReadersSeeEveryCommit: what readers keep open never shows an old state.
func TestReadersSeeEveryCommit(t *testing.T) {
	d := mustOpen(t, filepath.Join(t.TempDir(), "store.db"), Options{Serve: true})
	d.pets = nil // each read is one of the file
	for range 3 {
		settle(t, d)
		pet, _, err := d.CreatePet(t.Context(), animalstore.NewPet{Name: "Rex", CategoryID: 1}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for range d.nread {
			if _, err := d.Pet(t.Context(), pet.ID); err != nil {
				t.Errorf("got %v, want the pet that was just added", err)
			}
		}
	}
}

// TestReadersSeeOthersKeys: keys may be changed by other processes, of which no
// generation tells.
func TestReadersSeeOthersKeys(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	d := mustOpen(t, path, Options{Serve: true})
	hash := [32]byte{1}
	key, err := d.CreateKey(t.Context(), animalstore.NewKey{Name: "a", Plan: animalstore.PlanFree, Permissions: animalstore.Read, Environment: animalstore.Production}, hash, animalstore.Time{})
	if err != nil {
		t.Fatal(err)
	}
	other, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for _, name := range []string{"b", "c"} {
		settle(t, d)
		if err := sqlitex.Execute(other, "UPDATE keys SET name = ?", &sqlitex.ExecOptions{Args: []any{name}}); err != nil {
			t.Fatal(err)
		}
		for range d.nread {
			if got, err := d.Key(t.Context(), key.ID); got.Name != name || err != nil {
				t.Errorf("got the key %q, %v, want %q", got.Name, err, name)
			}
		}
	}
}

// TestReadersLetTheLogGo: readers that nobody uses any more do not keep the log
// from beginning anew.
func TestReadersLetTheLogGo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	d := mustOpen(t, path, Options{Serve: true})
	name := strings.Repeat("x", animalstore.MaxNameLength)
	settle(t, d)
	for range 3000 { // some pages each
		if _, _, err := d.CreatePet(t.Context(), animalstore.NewPet{Name: name, CategoryID: 1}, nil); err != nil {
			t.Fatal(err)
		}
	}
	log, err := os.Stat(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	if pages := log.Size() / 4096; pages > 2*checkpointPages {
		t.Errorf("the log grew to %d pages, want about %d", pages, checkpointPages)
	}
}

// TestFailedReadsKeepNothing: what went wrong may have been the transaction.
func TestFailedReadsKeepNothing(t *testing.T) {
	d := mustOpen(t, filepath.Join(t.TempDir(), "store.db"), Options{Serve: true})
	settle(t, d)
	for range d.nread {
		if err := d.readOwn(t.Context(), func(c *sqlite.Conn) error { return sqlitex.Execute(c, "FROB", nil) }); err == nil {
			t.Error("no error")
		}
	}
	if n := keeping(d); n != 0 {
		t.Errorf("%d readers keep a transaction open, want none", n)
	}
}
