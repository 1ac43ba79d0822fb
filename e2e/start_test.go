package e2e

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"animalstore/internal/testenv"
)

var (
	liveKey  = regexp.MustCompile(`ast_live_[0-9A-Za-z]{38}\b`)
	curlLine = regexp.MustCompile(`(?m)^ *(curl .*)$`)

	logCommand = regexp.MustCompile(`command="(animalstore .*)"`)
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

	// Whoever lost it runs the command in the log.
	found := logCommand.FindStringSubmatch(s.stderr.String())
	if found == nil {
		t.Fatalf("the log names no command:\n%s", s.stderr.String())
	}
	args := strings.Fields(strings.TrimPrefix(found[1], "animalstore "))
	created := exec.Command(binary, args...)
	created.Env = cleanEnv()
	another, err := created.Output()
	if err != nil {
		t.Fatalf("%s: %v", found[1], err)
	}
	s = start(t, onDatabase(s.database))
	wantStatus(t, newClient(t, s, strings.TrimSpace(string(another))).get(t, "/v1/keys"), 200, "")
	s.stop()
}

// TestNetworkAddress: a server for other machines names an address that they can use, and says
// that it is not encrypted, on the screen and in the log. Others don't.
func TestNetworkAddress(t *testing.T) {
	t.Parallel()
	addresses, err := net.InterfaceAddrs()
	if err != nil || !slices.ContainsFunc(addresses, func(a net.Addr) bool {
		network, ok := a.(*net.IPNet)
		return ok && network.IP.IsGlobalUnicast() && network.IP.To4() != nil
	}) {
		t.Skip("this machine has no network")
	}
	for _, listen := range []string{"0.0.0.0:0", ":0"} {
		s := start(t, onAddress(listen))
		url := s.printed(regexp.MustCompile(`Network   (http://\S+) \(plain HTTP`))
		host, _, err := net.SplitHostPort(strings.TrimPrefix(url, "http://"))
		if ip := net.ParseIP(host); err != nil || ip == nil || ip.IsLoopback() || ip.IsUnspecified() {
			t.Errorf("%s: got the address %s, %v, want one of the network", listen, url, err)
		}
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: testenv.Deadline}
		if res, err := client.Get(url + "/livez"); err != nil || res.StatusCode != http.StatusOK {
			t.Errorf("%s: got %v, %v from %s, want 200", listen, res, err, url)
		}
		if !strings.Contains(s.stderr.String(), "over plain HTTP\" network="+url+"\n") {
			t.Errorf("%s: the log doesn't say that others can use %s:\n%s", listen, url, s.stderr)
		}
	}
	s := start(t)
	s.ownerKey()
	if out := s.output(); strings.Contains(out, "plain HTTP") {
		t.Errorf("got this for this machine alone, want nothing about a network:\n%s", out)
	}
}

// TestNotifyReady_Slow listens where systemd would.
func TestNotifyReady_Slow(t *testing.T) {
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
