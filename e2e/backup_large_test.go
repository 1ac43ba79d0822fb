//go:build linux

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestBackupOfALargeStore measures what a backup of half a gigabyte does to writers, and
// bounds it: no write may wait for the whole copy, and the log doesn't stay as large as
// it grew.
func TestBackupOfALargeStore(t *testing.T) {
	if !soak {
		t.Skip("fills a store of 500 MB: with ANIMALSTORE_SOAK=1")
	}
	database := newDatabase(t)
	if r := run(t, "seed", "--pets", "4000000", "--database", "sqlite:"+database); r.code != 0 {
		t.Fatalf("seed: %+v", r)
	}
	key := loadKey(t, database)
	s := start(t, onDatabase(database))
	l := startLoad(t, s, key, 32, "large", 100)
	slowest := watchWrites(t, s, key)
	size := highestSize(database + "-wal")
	time.Sleep(10 * time.Second)
	alone, aloneSize, before := slowest(), size(), l.acknowledged.Load()

	slowest, size = watchWrites(t, s, key), highestSize(database+"-wal")
	file := filepath.Join(t.TempDir(), "copy.db")
	began := time.Now()
	backup := startCommand(t, "db", "backup", file, "--database", "sqlite:"+database)
	// Once it is copied, it is only checked, for minutes.
	info, err := os.Stat(database)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, 10*time.Minute, "the store is copied", func() bool {
		copied, err := os.Stat(file + ".partial")
		return err == nil && copied.Size() >= info.Size() || backup.ended()
	})
	took := time.Since(began)
	time.Sleep(5 * time.Second) // the log is moved into the database
	during, duringSize := slowest(), size()
	after, err := os.Stat(database + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("without a backup: up to %v a write, %d MB of log, %d pets in 10 s", alone, aloneSize>>20, before)
	t.Logf("with a backup: up to %v a write, %d MB of log, then %d MB; copied in %v, %d pets", during, duringSize>>20, after.Size()>>20, took, l.acknowledged.Load()-before)
	if limit := 5 * time.Second; during > limit+alone {
		t.Errorf("a write took %v during a backup, want at most %v", during, limit+alone)
	}
	if after.Size() > 128<<20 {
		t.Errorf("the log has %d MB after the backup, want at most 128", after.Size()>>20)
	}
	l.stop()
	if n := l.unanswered.Load(); n > 0 || len(l.refusals()) > 0 {
		t.Errorf("%d requests were not answered, %v were refused, want none", n, fmt.Sprint(l.refusals()))
	}
	backup.kill()
}
