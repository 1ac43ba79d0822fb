//go:build linux

package e2e

import (
	"fmt"
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
	if exists(program) {
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

// TestLitestream runs Litestream alongside a server under load and repeatedly kills both.
// It must restore a state that the store was in and, after it has caught up, everything
// that was acknowledged.
func TestLitestream(t *testing.T) {
	testenv.OnlySoak(t, "downloads and builds Litestream")
	program := litestream(t)
	database := newDatabase(t)
	key := adminKey(t, database)
	replica := "file://" + filepath.Join(t.TempDir(), "replica")
	for round := range 4 {
		s := start(t, onDatabase(database))
		litestream := startProgram(t, program, "replicate", database, replica)
		l := startLoad(t, s, key, 32, fmt.Sprint("round ", round), 50)
		time.Sleep(10 * time.Second) // of full load
		if round == 3 {
			acknowledged := l.stop()
			s.stop()
			litestream.signal(syscall.SIGTERM) // it sends the rest before it ends
			litestream.wait()
			wantReplica(t, program, replica, database, acknowledged)
			break
		}
		if round%2 == 0 { // alternate which one is killed first
			litestream.kill()
			s.kill()
		} else {
			s.kill()
			litestream.kill()
		}
		l.stop()
		wantReplica(t, program, replica, database, nil)
	}
}

// wantReplica restores a replica and checks what it contains.
func wantReplica(t *testing.T, program, replica, database string, acknowledged []pet) {
	t.Helper()
	restored := newDatabase(t)
	output(t, exec.Command(program, "restore", "-o", restored, replica))
	wantState(t, restored, database, acknowledged)
}
