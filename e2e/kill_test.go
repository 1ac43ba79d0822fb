package e2e

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// TestKill kills the server under load again and again, on one file. Everything it
// acknowledged before must be stored afterwards, and no id may be used twice.
func TestKill(t *testing.T) {
	t.Parallel()
	const writers = 32
	rounds := 4
	if soak {
		rounds = 1000
	}
	database := newDatabase(t)
	key := loadKey(t, database)
	acknowledged := newLedger()
	verified := int64(0) // the highest id known to be there with all below it
	for round := range rounds {
		s := start(t, onDatabase(database))
		fresh := writeUntilDead(t, s, key, writers, fmt.Sprint("round ", round), func(acknowledged *atomic.Int64) {
			eventually(t, time.Minute, "something is acknowledged", func() bool { return acknowledged.Load() > 0 })
			// Loads of different lengths meet different moments of the log.
			time.Sleep(time.Duration(100+round%4*100) * time.Millisecond)
			s.kill()
		})
		highest := verified
		for _, p := range fresh {
			if err := acknowledged.add(p); err != nil {
				t.Errorf("round %d: %v", round, err)
			}
			highest = max(highest, p.ID)
		}
		if got := integrity(t, database); got != "ok" {
			t.Fatalf("round %d: the file is damaged: %s", round, got)
		}
		if got := eventsMatch(t, database); got != "ok" {
			t.Fatalf("round %d: %s", round, got)
		}
		s = start(t, onDatabase(database))
		if n, which := acknowledged.missing(newClient(t, s, key).allPets(t, verified), verified); n > 0 {
			t.Fatalf("round %d: %d of %d acknowledged pets are lost or changed, such as %q", round, n, len(fresh), which)
		}
		verified = highest
		s.kill() // a start that is killed at once must do no harm either
	}
	// Finally check everything, from all rounds.
	s := start(t, onDatabase(database))
	stored := newClient(t, s, key).allPets(t, 0)
	if n, which := acknowledged.missing(stored, 0); n > 0 {
		t.Errorf("%d acknowledged pets are lost or changed in the end, such as %q", n, which)
	}
	t.Logf("%d kills, %d pets acknowledged, %d stored", 2*rounds, len(acknowledged.pets), len(stored))
	s.stop()
	if got := integrity(t, database); got != "ok" {
		t.Errorf("the file is damaged: %s", got)
	}
}

// writeUntilDead has writers add pets while during runs, which ends the
// server, and returns the pets that were acknowledged in full.
func writeUntilDead(t *testing.T, s *server, key string, writers int, label string, during func(acknowledged *atomic.Int64)) []pet {
	t.Helper()
	statuses := []string{"available", "pending", "sold"}
	acknowledged := make([][]pet, writers)
	var count atomic.Int64
	var wg sync.WaitGroup
	for w := range writers {
		c := newClient(t, s, key)
		wg.Go(func() {
			for n := 0; ; n++ {
				want := pet{Name: fmt.Sprintf("%s, writer %d, number %d 🦊", label, w, n), CategoryID: int64(n), Status: statuses[n%3]}
				a, err := c.try("POST", "/v1/pets", newPetBody(want.Name, want.CategoryID, want.Status))
				if err != nil {
					return // the server is gone: this one may be stored or not
				}
				got, err := decodePet(a.body)
				want.ID = got.ID
				if a.status != 201 || err != nil || got != want {
					t.Errorf("%s: sent %+v, got %d %s", label, want, a.status, a.body)
					return
				}
				acknowledged[w] = append(acknowledged[w], got)
				count.Add(1)
			}
		})
	}
	during(&count)
	wg.Wait()
	var all []pet
	for _, some := range acknowledged {
		all = append(all, some...)
	}
	return all
}

// integrity returns SQLite's verdict on the file of a server that isn't running. It
// checks a copy, so that the next server has to recover the file on its own.
func integrity(t testing.TB, database string) (verdict string) {
	t.Helper()
	onCopy(t, database, func(conn *sqlite.Conn) (err error) {
		verdict, err = sqlitex.ResultText(conn.Prep("PRAGMA integrity_check"))
		return err
	})
	return verdict
}

// onCopy calls f with a connection to a copy of a file.
func onCopy(t testing.TB, database string, f func(*sqlite.Conn) error) {
	t.Helper()
	dir, err := os.MkdirTemp(t.TempDir(), "copy") // removed at once: a soak creates a thousand
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	copied := filepath.Join(dir, "copy.db")
	for _, suffix := range []string{"", "-wal"} {
		if err := copyFile(database+suffix, copied+suffix); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	conn, err := sqlite.OpenConn(copied, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := f(conn); err != nil {
		t.Fatal(err)
	}
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
