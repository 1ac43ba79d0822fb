package e2e

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// healthcheck runs the command and returns its exit code and everything it printed.
func healthcheck(t *testing.T, env []string, args ...string) (code int, output string) {
	t.Helper()
	cmd := exec.Command(binary, append([]string{"healthcheck"}, args...)...)
	cmd.Env = append(cleanEnv(), env...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

func TestHealthcheck(t *testing.T) {
	t.Parallel()
	s := start(t)
	listen := strings.TrimPrefix(s.url, "http://")
	_, port, _ := net.SplitHostPort(listen)
	redirects := httptest.NewServer(http.RedirectHandler(s.url+"/readyz", http.StatusFound))
	defer redirects.Close()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for _, c := range []struct {
		name string
		env  []string
		args []string
		code int
		want string
	}{
		{"by flag", nil, []string{"--url", s.url}, 0, "ready\n"},
		{"with /v1", nil, []string{"--url", s.url + "/v1"}, 0, "ready\n"},
		{"as JSON", nil, []string{"--url", s.url, "--json"}, 0, `"ready": true`},
		{"by the address of the server", []string{"ANIMALSTORE_LISTEN=" + listen}, nil, 0, "ready\n"},
		{"on every address", []string{"ANIMALSTORE_LISTEN=0.0.0.0:" + port}, nil, 0, "ready\n"},
		{"without an address", []string{"ANIMALSTORE_LISTEN=:" + port}, nil, 0, "ready\n"},
		{"past a proxy", []string{"HTTP_PROXY=http://127.0.0.1:1"}, []string{"--url", s.url}, 0, "ready\n"},
		{"nobody there", nil, []string{"--url", "http://127.0.0.1:1"}, 1, "connection refused"},
		{"no response", nil, []string{"--url", "http://" + silent.Addr().String()}, 1, "within 4s"},
		{"a redirect", nil, []string{"--url", redirects.URL}, 1, "302 Found"},
		{"not HTTPS", nil, []string{"--url", "https://" + listen}, 1, "not ready"},
		{"not an address", nil, []string{"--url", "127.0.0.1"}, 2, "--url"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, out := healthcheck(t, c.env, c.args...)
			if code != c.code || !strings.Contains(out, c.want) {
				t.Errorf("exit code %d, %q; want %d and %q", code, out, c.code, c.want)
			}
		})
	}
}

// TestHealthcheckTLS uses a certificate that nothing on this machine trusts, as for a
// public name that leads elsewhere.
func TestHealthcheckTLS(t *testing.T) {
	t.Parallel()
	cert, key, _ := selfSigned(t)
	s := start(t, withArgs("--tls-cert", cert, "--tls-key", key))
	env := []string{"ANIMALSTORE_TLS_CERT=" + cert, "ANIMALSTORE_LISTEN=" + strings.TrimPrefix(s.url, "https://")}
	if code, out := healthcheck(t, env); code != 0 {
		t.Errorf("exit code %d, %q; want 0", code, out)
	}
}

// TestNoOwnerKey starts a server whose standard output ends up in a log.
func TestNoOwnerKey(t *testing.T) {
	t.Parallel()
	s := start(t, withEnv("ANIMALSTORE_CREATE_OWNER_KEY=false"))
	s.stop()
	if s.stdout.String() != "" || !strings.Contains(s.stderr.String(), "no keys yet") {
		t.Errorf("want nothing on standard output, and a hint in the log.\n%s", s.output())
	}
	if out, err := exec.Command(binary, "keys", "list", "--json", "--database", "sqlite:"+s.database).Output(); err != nil || strings.TrimSpace(string(out)) != "[]" {
		t.Errorf("keys: %s, %v; want none", out, err)
	}

	// With a key there is nothing to say.
	if out, err := exec.Command(binary, "keys", "create", "--name", "me", "--database", "sqlite:"+s.database).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s = start(t, onDatabase(s.database), withArgs("--create-owner-key=false"))
	s.stop()
	if strings.Contains(s.stderr.String(), "no keys yet") {
		t.Errorf("there is a key.\n%s", s.output())
	}
}

// TestNotifyReady listens where systemd would.
func TestNotifyReady(t *testing.T) {
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
	conn.SetReadDeadline(time.Now().Add(time.Minute))
	message := make([]byte, 100)
	n, err := conn.Read(message)
	if err != nil || string(message[:n]) != "READY=1" {
		t.Errorf("got %q, %v; want READY=1", message[:n], err)
	}
}
