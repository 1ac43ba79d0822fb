package e2e

import (
	be "encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"animalstore/internal/testenv"
)

// TestTruncatedLog truncates the log of a running server, with and without writes. The
// server stops without acknowledging another write. What comes next is for the operator:
// the file opens, or the next start says what to do.
func TestTruncatedLog(t *testing.T) {
	t.Parallel()
	for _, load := range []bool{false, true} {
		for where, cut := range map[string]func(frames int64) int64{
			"emptied":             func(int64) int64 { return 0 },
			"in the middle":       func(frames int64) int64 { return logSize(frames / 2) },
			"before a last frame": func(frames int64) int64 { return logSize(frames - 1) },
			"in a last frame":     func(frames int64) int64 { return logSize(frames) - 2000 },
			"anywhere":            func(frames int64) int64 { return rand.Int64N(logSize(frames)) },
		} {
			t.Run(fmt.Sprintf("%s, load=%t", where, load), func(t *testing.T) {
				t.Parallel()
				truncateLog(t, cut, load)
			})
		}
	}
}

func truncateLog(t *testing.T, cut func(frames int64) int64, load bool) {
	s := start(t)
	key := loadKey(t, s.database)
	var mu sync.Mutex
	var last time.Time // when the latest request began that was acknowledged
	var acknowledged atomic.Int64
	most := 10
	if load {
		most = 200 // fewer than would start the log over, which would make a truncated end harmless
	}
	var clients sync.WaitGroup
	for i := range 4 {
		c := newClient(t, s, key)
		clients.Go(func() {
			for n := range most {
				begun := time.Now()
				a, err := c.try("POST", "/v1/pets", newPetBody(fmt.Sprint("Rex ", i, " ", n), 1, "sold"))
				if err != nil || a.status != 201 {
					return
				}
				mu.Lock()
				if begun.After(last) {
					last = begun
				}
				mu.Unlock()
				acknowledged.Add(1)
			}
		})
	}
	eventually(t, time.Minute, "40 pets are acknowledged", func() bool { return acknowledged.Load() >= 40 })
	to := cut(framesOfLog(t, s.database))
	if err := os.Truncate(s.database+"-wal", to); err != nil {
		t.Fatal(err)
	}
	truncated := time.Now()
	s.wantStorageFailure(time.Minute, "store.db-wal was truncated") // a second on a machine with time to spare
	t.Logf("truncated to %d bytes, noticed after %v", to, time.Since(truncated))
	clients.Wait()
	if last.After(truncated) {
		t.Errorf("a request was acknowledged that began %v after the log was truncated", last.Sub(truncated))
	}
	s = launch(t, onDatabase(s.database))
	if s.awaitServing() {
		s.stop()
		return
	}
	if code, log := s.wait(), s.stderr.String(); code != 1 || !strings.Contains(log, "restore a backup") {
		t.Errorf("the next start: exit code %d, want 1 and what to do.\n%s", code, s.output())
	}
}

// framesOfLog returns how many frames the index of the log has.
func framesOfLog(t *testing.T, database string) int64 {
	t.Helper()
	index, err := os.ReadFile(database + "-shm")
	if err != nil {
		t.Fatal(err)
	}
	return int64(be.NativeEndian.Uint32(index[16:]))
}

// logSize is the size of a log: a header, then a header and a page for each frame.
func logSize(frames int64) int64 { return 32 + frames*(24+4096) }

// TestLogOfOtherProcesses: a server takes nothing for a truncated log that other
// programs do to it by way of SQLite.
func TestLogOfOtherProcesses(t *testing.T) {
	t.Parallel()
	testenv.Need(t, "sqlite3")
	s := start(t)
	l := startLoad(t, s, loadKey(t, s.database), 4, "during", 4000)
	reader := startProgram(t, "sqlite3", s.database, "PRAGMA busy_timeout = 10000",
		"BEGIN; SELECT count(*) FROM pets; COMMIT;"+strings.Repeat("PRAGMA wal_checkpoint(RESTART); PRAGMA wal_checkpoint(TRUNCATE);", 20))
	for n := range 3 {
		newKey(t, s.database, "--name", fmt.Sprint("beside ", n))
		to := filepath.Join(t.TempDir(), "copy.db")
		for _, args := range [][]string{{"db", "backup", "--database", databaseFlag(s.database), to}, {"db", "check", "--database", databaseFlag(s.database)}} {
			if r := run(t, args...); r.code != 0 {
				t.Errorf("%v: exit code %d\n%s", args, r.code, r.stderr)
			}
		}
		if out, err := exec.Command("sqlite3", s.database, "PRAGMA busy_timeout = 10000", "PRAGMA wal_checkpoint(TRUNCATE)").CombinedOutput(); err != nil {
			t.Errorf("%v %s", err, out)
		}
	}
	eventually(t, time.Minute, "the other program ends", reader.ended)
	if code := reader.wait(); code != 0 {
		t.Errorf("sqlite3: exit code %d\n%s", code, reader.output())
	}
	if len(l.stop()) == 0 {
		t.Error("nothing was written meanwhile: the test checks nothing")
	}
	s.stop()
}
