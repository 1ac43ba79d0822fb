package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// forEachReader calls f once for each reader, which must be idle: f's first read uses
// that one.
func forEachReader(d *DB, f func()) {
	for range d.nread {
		f()
		d.readers.mu.Lock()
		last := d.nread - 1
		d.readers.stack = slices.Concat(d.readers.stack[last:], d.readers.stack[:last])
		d.readers.mu.Unlock()
	}
}

func mustCreate(t *testing.T, d *DB, name string) animalstore.Pet {
	t.Helper()
	pet, _, err := d.CreatePet(t.Context(), animalstore.NewPet{Name: name, CategoryID: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return pet
}

// takeSnapshots reads until every reader keeps a snapshot.
func takeSnapshots(t *testing.T, d *DB) {
	t.Helper()
	forEachReader(d, func() {
		for range 3 {
			if err := d.readOwn(t.Context(), func(c *sqlite.Conn) error {
				return sqlitex.Execute(c, "SELECT max(id) FROM pets", nil)
			}); err != nil {
				t.Fatal(err)
			}
		}
	})
	if n := countSnapshots(d); n != d.nread {
		t.Fatalf("%d of %d readers keep a snapshot, want all", n, d.nread)
	}
}

// countSnapshots returns the number of readers that keep a snapshot.
func countSnapshots(d *DB) (n int) {
	for _, r := range d.readers.stack {
		if r.snapshot != !r.conn.AutocommitEnabled() {
			panic("a reader's snapshot flag is wrong")
		}
		if r.snapshot {
			n++
		}
	}
	return n
}

// TestReadersSeeEveryCommit: a snapshot never shows an old state.
func TestReadersSeeEveryCommit(t *testing.T) {
	d := mustOpen(t, filepath.Join(t.TempDir(), "store.db"), Options{Serve: true})
	for range 3 {
		takeSnapshots(t, d)
		pet, _, err := d.CreatePet(t.Context(), animalstore.NewPet{Name: "Rex", CategoryID: 1}, nil)
		if err != nil {
			t.Fatal(err)
		}
		forEachReader(d, func() {
			if _, err := d.Pet(t.Context(), pet.ID); err != nil {
				t.Errorf("got %v, want the pet that was just added", err)
			}
		})
	}
}

// TestReadersWithoutTheLockSeeOthersPets: a process that doesn't serve the file keeps
// no snapshot, because its generation doesn't count the commits of the server.
func TestReadersWithoutTheLockSeeOthersPets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	server := mustOpen(t, path, Options{Serve: true})
	command := mustOpen(t, path, Options{MustExist: true})
	for range 3 {
		pet := mustCreate(t, server, "Rex")
		for range 3 * command.nread { // enough for a server to keep a snapshot
			if got, err := command.Pet(t.Context(), pet.ID); err != nil || got != pet {
				t.Fatalf("Pet(%d) = %+v, %v, want what the server stored: %+v", pet.ID, got, err, pet)
			}
		}
		if n := countSnapshots(command); n != 0 {
			t.Errorf("%d readers keep a snapshot, want none", n)
		}
	}
}

// TestReadersSeeOthersKeys: other processes may change keys, which the generation
// doesn't count.
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
		takeSnapshots(t, d)
		if err := sqlitex.Execute(other, "UPDATE keys SET name = ?", &sqlitex.ExecOptions{Args: []any{name}}); err != nil {
			t.Fatal(err)
		}
		forEachReader(d, func() {
			if got, err := d.Key(t.Context(), key.ID); got.Name != name || err != nil {
				t.Errorf("got the key %q, %v, want %q", got.Name, err, name)
			}
		})
	}
}

// TestIdleReadersReleaseTheLog: idle readers don't keep the log from restarting.
func TestIdleReadersReleaseTheLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	d := mustOpen(t, path, Options{Serve: true})
	name := strings.Repeat("x", animalstore.MaxNameLength)
	takeSnapshots(t, d)
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

// TestFailedReadsKeepNothing: a reader releases its snapshot after an error, because
// the transaction may be the reason.
func TestFailedReadsKeepNothing(t *testing.T) {
	d := mustOpen(t, filepath.Join(t.TempDir(), "store.db"), Options{Serve: true})
	takeSnapshots(t, d)
	forEachReader(d, func() {
		if err := d.readOwn(t.Context(), func(c *sqlite.Conn) error { return sqlitex.Execute(c, "FROB", nil) }); err == nil {
			t.Error("no error")
		}
	})
	if n := countSnapshots(d); n != 0 {
		t.Errorf("%d readers keep a snapshot, want none", n)
	}
}

// TestSameReaderAgain: reads that follow each other use the same reader, and so its
// snapshot and what the processor has cached of it.
func TestSameReaderAgain(t *testing.T) {
	d := mustOpen(t, filepath.Join(t.TempDir(), "store.db"), Options{Serve: true})
	used := map[*sqlite.Conn]bool{}
	for range 10 {
		if err := d.readOwn(t.Context(), func(c *sqlite.Conn) error { used[c] = true; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if len(used) != 1 {
		t.Errorf("10 reads used %d readers, want 1", len(used))
	}
}

// TestCloseWaitsForReaders: Close returns only after the reads that have begun, and
// later ones fail.
func TestCloseWaitsForReaders(t *testing.T) {
	d := mustOpen(t, filepath.Join(t.TempDir(), "store.db"), Options{Serve: true})
	began, end, closed := make(chan struct{}), make(chan struct{}), make(chan error)
	read := make(chan error)
	go func() {
		read <- d.readOwn(t.Context(), func(c *sqlite.Conn) error {
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
