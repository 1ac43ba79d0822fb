package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// TestBackupWhileServing copies the database as docs/operations.md says, while
// pets are being added: the copy has to be the store at one instant.
func TestBackupWhileServing(t *testing.T) {
	t.Parallel()
	needs(t, "sqlite3")
	s := start(t)
	key := loadKey(t, s.database)
	var mu sync.Mutex
	acknowledged := newLedger()
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(acknowledged.pets)
	}
	stop := make(chan struct{})
	var writers sync.WaitGroup
	for i := range 4 {
		c := newClient(t, s, key)
		writers.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				a, err := c.try("POST", "/v1/pets", newPetBody(fmt.Sprintf("%d of %d", n, i), int64(n%7), "available"))
				if err != nil || a.status != 201 {
					t.Errorf("add a pet during the backup: got %d %s, error %v, want 201", a.status, a.body, err)
					return
				}
				p, err := decodePet(a.body)
				mu.Lock()
				if err == nil {
					err = acknowledged.add(p)
				}
				mu.Unlock()
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	eventually(t, time.Minute, "pets are being added", func() bool { return count() > 200 || t.Failed() })
	before := count()
	copied := filepath.Join(t.TempDir(), "backup.db")
	backup := exec.Command("sh", "-c", fmt.Sprintf(`umask 077; sqlite3 '%s' "VACUUM INTO '%s'"`, s.database, copied))
	if out, err := backup.CombinedOutput(); err != nil {
		t.Errorf("back up: %v\n%s", err, out)
	}
	during := count()
	eventually(t, time.Minute, "pets are added after the backup", func() bool { return count() > during || t.Failed() })
	close(stop)
	writers.Wait()
	s.stop()

	info, err := os.Stat(copied)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the copy has mode %v, error %v, want 0600", info.Mode(), err)
	}
	if r := run(t, "db", "check", "--database", "sqlite:"+copied); r.code != 0 {
		t.Errorf("db check of the copy: exit code %d, want 0\n%s%s", r.code, r.stdout, r.stderr)
	}
	restored := start(t, onDatabase(copied))
	found := newClient(t, restored, key).allPets(t, 0)
	for id, p := range found {
		if acknowledged.pets[id] != p {
			t.Errorf("pet %d is %+v in the copy, but was acknowledged as %+v", id, p, acknowledged.pets[id])
		}
	}
	// SQLite gives ids in the order of commits, so an instant has the first of them.
	for id := int64(1); id <= int64(len(found)); id++ {
		if _, ok := found[id]; !ok {
			t.Fatalf("the copy has %d pets, but not number %d", len(found), id)
		}
	}
	if len(found) < before || len(found) > len(acknowledged.pets) {
		t.Errorf("the copy has %d pets, want %d that were there before it or more, and at most all %d", len(found), before, len(acknowledged.pets))
	}
}
