//go:build linux

package e2e

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"animalstore/internal/testenv"
)

// supervisor holds sockets for a server like systemd does for the packaged socket unit,
// while the server restarts.
type supervisor struct {
	addresses []string
	files     []*os.File
	database  string
}

// newSupervisor listens on two ports: for the service, and for metrics and profiles.
func newSupervisor(t *testing.T) *supervisor {
	t.Helper()
	v := &supervisor{database: newDatabase(t)}
	for range 2 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		f, err := l.(*net.TCPListener).File()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		v.addresses, v.files = append(v.addresses, l.Addr().String()), append(v.files, f)
		l.Close() // the file keeps the socket open
	}
	return v
}

// start starts a server, which may not be serving yet.
func (v *supervisor) start(t *testing.T) *server {
	t.Helper()
	// LISTEN_PID has to be the server's own id.
	cmd := exec.Command("sh", "-c", `LISTEN_PID=$$ exec "$@"`, "sh", binary, "serve",
		"--listen", "127.0.0.1:1", "--ops-listen", "127.0.0.1:1", "--database", "sqlite:"+v.database)
	cmd.Dir, cmd.ExtraFiles = filepath.Dir(v.database), v.files
	cmd.Env = append(cleanEnv(), "LISTEN_FDS=2", "LISTEN_FDNAMES=animalstore.socket:ops")
	s := startProcess(t, cmd)
	s.database, s.url = v.database, "http://"+v.addresses[0]
	return s
}

// TestSocketActivation_Slow restarts a server under load. Its supervisor holds the sockets, so
// no connection is refused, and every request gets a response. None of the connections is
// idle, so there is no exception for requests on one that is being closed.
func TestSocketActivation_Slow(t *testing.T) {
	t.Parallel()
	v := newSupervisor(t)
	key := adminKey(t, v.database)
	s := v.start(t)
	const clients = 16
	load := startRawLoad(t, &server{url: s.url}, key, clients, false) // whichever server has the socket
	rounds := testenv.Count(3, 20)
	for round := range rounds {
		before := [2]int64{load.answered[0].Load(), load.answered[1].Load()}
		testenv.Eventually(t, "requests are answered", func() bool {
			return t.Failed() || load.answered[0].Load() > before[0]+10*clients && load.answered[1].Load() > before[1]+10*clients
		})
		if round == 0 {
			resp, err := http.Get("http://" + v.addresses[1] + "/metrics")
			if err != nil || resp.StatusCode != 200 {
				t.Errorf("metrics: got %v, %v, want 200 on the socket named ops", resp, err)
			}
		}
		s.stop()
		s = v.start(t)
	}
	testenv.Eventually(t, "the last server serves", func() bool { return t.Failed() || strings.Contains(s.stderr.String(), "msg=serving") })
	load.stopping.Store(true)
	load.clients.Wait()
	s.stop()
	load.wantStored(t, v.database, key)
}

// TestSocketMistakes: sockets that can't be used are refused with a message.
func TestSocketMistakes(t *testing.T) {
	t.Parallel()
	v := newSupervisor(t)
	local, err := net.Listen("unix", filepath.Join(t.TempDir(), "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	unix, err := local.(*net.UnixListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close()
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for name, test := range map[string]struct {
		count string
		files []*os.File
	}{
		"two": {"2", v.files}, "a file": {"1", []*os.File{file}}, "a Unix socket": {"1", []*os.File{unix}}, "no number": {"one", v.files[:1]},
	} {
		cmd := exec.Command("sh", "-c", `LISTEN_PID=$$ exec "$@"`, "sh", binary, "serve", "--database", "sqlite:"+v.database)
		cmd.ExtraFiles, cmd.Env = test.files, append(cleanEnv(), "LISTEN_FDS="+test.count)
		s := startProcess(t, cmd)
		if code := s.wait(); code != 1 || !strings.Contains(s.stderr.String(), "LISTEN_FDS") {
			t.Errorf("%s: exit code %d, want 1 and a message\n%s", name, code, s.output())
		}
	}
	// Sockets for another process are none of ours.
	if s := start(t, withEnv("LISTEN_FDS=1", "LISTEN_PID=1")); !strings.Contains(s.stderr.String(), "LISTEN_FDS") {
		t.Errorf("for another process: no warning\n%s", s.output())
	}
}
