//go:build linux

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"animalstore/internal/testenv"
)

const litestreamVersion = "v0.5.17"

// litestream returns the path of the real program. It is built once, in the user's
// cache, because it is too large for this module's tools.
func litestream(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cache, "animalstore-tests", "litestream-"+litestreamVersion)
	program := filepath.Join(dir, "litestream")
	if _, err := os.Stat(program); err == nil {
		return program
	}
	cmd := exec.Command("go", "install", "github.com/benbjohnson/litestream/cmd/litestream@"+litestreamVersion)
	cmd.Dir = t.TempDir() // outside of this module
	cmd.Env = append(os.Environ(), "GOBIN="+dir, "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		testenv.Missing(t, "Litestream can't be built: %v\n%s", err, out)
	}
	return program
}

// TestLitestream runs Litestream beside a server under load and repeatedly kills both.
// It must restore a state that the store was in and, after it has caught up, everything
// that was acknowledged.
func TestLitestream(t *testing.T) {
	testenv.OnlySoak(t, "downloads and builds Litestream")
	program := litestream(t)
	database := newDatabase(t)
	key := loadKey(t, database)
	replica := "file://" + filepath.Join(t.TempDir(), "replica")
	l := &ledgerOfNumbers{sent: make([]int, 32), acknowledged: make([]int, 32)}
	for round := range 4 {
		s := start(t, onDatabase(database))
		beside := startProgram(t, program, "replicate", database, replica)
		stop := make(chan struct{})
		writers := l.write(t, s, key, stop)
		time.Sleep(10 * time.Second) // of full load
		if round == 3 {
			close(stop)
			writers.Wait()
			sent, acknowledged := l.counts()
			s.stop()
			beside.signal(syscall.SIGTERM) // it sends the rest before it ends
			beside.wait()
			wantReplica(t, program, replica, acknowledged, sent)
			break
		}
		if round%2 == 0 { // alternate which one is killed first
			beside.kill()
			s.kill()
		} else {
			s.kill()
			beside.kill()
		}
		close(stop)
		writers.Wait()
		sent, _ := l.counts()
		wantReplica(t, program, replica, make([]int, len(sent)), sent)
	}
}

// wantReplica restores a replica and checks what it contains.
func wantReplica(t *testing.T, program, replica string, least, most []int) {
	t.Helper()
	restored := newDatabase(t)
	if out, err := exec.Command(program, "restore", "-o", restored, replica).CombinedOutput(); err != nil {
		t.Fatalf("litestream restore: %v\n%s", err, out)
	}
	wantState(t, restored, least, most)
}
