//go:build linux

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"animalstore/internal/testenv"
)

// largeStore creates a store of this many pets and, in addition, about this many megabytes.
// These are in a table that no check reads row by row, and once more in its index.
func largeStore(t *testing.T, pets, megabytes int) (database string) {
	t.Helper()
	database = newDatabase(t)
	seed(t, database, pets)
	newKey(t, database, "--name", "owner")
	query(t, database, fmt.Sprintf("WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) INSERT INTO console_forms (hash, used_at) SELECT randomblob(500000), 4000000000000 FROM n", megabytes))
	return database
}

// TestBucketMemory: the memory of a server doesn't grow with the size of its backup.
func TestBucketMemory(t *testing.T) {
	testenv.OnlySoak(t, "it needs 3 GB of disk space")
	service := startVersity(t, t.TempDir())
	peak := func(pets, megabytes int) int64 {
		database := largeStore(t, pets, megabytes)
		defer os.RemoveAll(filepath.Dir(database))
		s := start(t, onDatabase(database), withEnv(append(service.env(), "ANIMALSTORE_BACKUP_TO="+bucketPlace)...))
		testenv.Eventually(t, "a backup is uploaded", func() bool {
			return s.ended() || strings.Contains(s.stderr.String(), "uploaded a backup")
		})
		if s.ended() {
			t.Fatal(s.output())
		}
		megabytesUsed := s.peakMemory() >> 20
		t.Logf("a backup of %d MB: %d MiB of memory at most", backupsIn(t, service.env())[0].Bytes/1e6, megabytesUsed)
		s.stop()
		return megabytesUsed
	}
	small, large := peak(100_000, 30), peak(1_500_000, 850)
	if large-small > 96 { // what caches, one sort and the garbage collector may take
		t.Errorf("memory grew by %d MiB with the size, want at most 96", large-small)
	}
}

// peakMemory is the most memory that a server has had, in bytes.
func (s *server) peakMemory() int64 {
	s.t.Helper()
	status := string(mustRead(s.t, fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid)))
	_, text, _ := strings.Cut(status, "VmHWM:")
	var kilobytes int64
	if _, err := fmt.Sscan(text, &kilobytes); err != nil {
		s.t.Fatal(err)
	}
	return kilobytes << 10
}
