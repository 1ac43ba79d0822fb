package e2e

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"animalstore/internal/testenv"
)

var (
	liveKey  = regexp.MustCompile(`ast_live_[0-9A-Za-z]{38}\b`)
	curlLine = regexp.MustCompile(`(?m)^ *(curl .*)$`)
)

// printed waits for the output of the server's first start: it is written before the
// log says that the server is ready, but to another pipe.
func (s *server) printed(pattern *regexp.Regexp) string {
	s.t.Helper()
	var found []string
	testenv.Eventually(s.t, "it prints "+pattern.String(), func() bool {
		found = pattern.FindStringSubmatch(s.stdout.String())
		return found != nil
	})
	return found[len(found)-1]
}

// ownerKey is the key a production server printed.
func (s *server) ownerKey() string {
	s.t.Helper()
	return s.printed(liveKey)
}

// paste runs a line in a shell, as a person would, and returns the response's status
// according to curl.
func paste(t *testing.T, line string, env ...string) (status, output string) {
	t.Helper()
	testenv.Need(t, "curl")
	cmd := exec.Command("sh", "-c", line+` -sS --noproxy '*' -w '\n%{http_code}'`)
	cmd.Env = append(cleanEnv(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
	body, status, _ := strings.Cut(string(out), "\n\n")
	return status, body
}

// TestFirstRun starts a server on a new file, adds a pet with the key it prints, and
// restarts it.
func TestFirstRun(t *testing.T) {
	t.Parallel()
	s := start(t)
	key := s.ownerKey()
	c := newClient(t, s, key)
	wantStatus(t, c.do(t, "POST", "/v1/pets", `{"name":"Rex","categoryId":1}`), 201, "")
	t.Run("curl", func(t *testing.T) {
		if status, body := paste(t, s.printed(curlLine)); status != "200" || !strings.Contains(body, "Rex") {
			t.Errorf("%s\ngot %s %q, want 200 and the pet", s.printed(curlLine), status, body)
		}
	})
	s.stop()

	// The key is shown once and keeps working.
	s = start(t, onDatabase(s.database))
	wantStatus(t, newClient(t, s, key).get(t, "/v1/pets/1"), 200, "")
	s.stop()
	if out := s.stdout.String(); out != "" {
		t.Errorf("a second start prints %q, want nothing", out)
	}
}

// TestNotifyReady listens where systemd would.
func TestNotifyReady(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	dir, err := os.MkdirTemp("", "notify") // the name of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "socket")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	start(t, withEnv("NOTIFY_SOCKET="+path))
	conn.SetReadDeadline(time.Now().Add(testenv.Deadline))
	message := make([]byte, 100)
	n, err := conn.Read(message)
	if err != nil || string(message[:n]) != "READY=1" {
		t.Errorf("got %q, %v; want READY=1", message[:n], err)
	}
}
