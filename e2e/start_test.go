package e2e

import (
	"bufio"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"animalstore/internal/testenv"
)

var (
	liveKey  = regexp.MustCompile(`ast_live_[0-9A-Za-z]{38}\b`)
	testKey  = regexp.MustCompile(`ast_test_[0-9A-Za-z]{38}\b`)
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

func TestFirstRun(t *testing.T) {
	t.Parallel()
	s := start(t)
	key := s.ownerKey()
	line := s.printed(curlLine)
	if status, body := paste(t, line); status != "200" || body != "[]" {
		t.Errorf("%s\ngot %s %q, want 200 []", line, status, body)
	}
	for _, address := range []string{s.url + "/v1", s.url + "/docs"} {
		if !strings.Contains(s.stdout.String(), address+"\n") {
			t.Errorf("the address %s is not in the greeting:\n%s", address, s.stdout)
		}
	}
	c := newClient(t, s, key)
	wantStatus(t, c.do(t, "POST", "/v1/pets", `{"name":"Rex","categoryId":1}`), 201, "")
	s.stop()

	// The key is shown once and keeps working.
	s = start(t, onDatabase(s.database))
	wantStatus(t, newClient(t, s, key).get(t, "/v1/pets/1"), 200, "")
	s.stop()
	if out := s.stdout.String(); out != "" {
		t.Errorf("a second start prints %q, want nothing", out)
	}
}

// TestFirstRunFromSource does the same as make run, ended by Ctrl-C.
func TestFirstRunFromSource(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, withWrapper("go", "-C", root, "run"), withBinary("./cmd/animalstore"), withEnv("CGO_ENABLED=0", "GOFLAGS=-trimpath "+os.Getenv("GOFLAGS")))
	if status, body := paste(t, s.printed(curlLine)); status != "200" || body != "[]" {
		t.Errorf("got %s %q, want 200 []", status, body)
	}
	s.signal(syscall.SIGINT)
	s.wait() // go run exits with its own code after Ctrl-C
	if !strings.Contains(s.stderr.String(), "msg=stopped") {
		t.Errorf("Ctrl-C doesn't stop it cleanly.\n%s", s.output())
	}
}

func TestOwnerKeyFromEnvironment(t *testing.T) {
	t.Parallel()
	const given = "a-secret-of-my-own-0123456789"
	s := start(t, withEnv("ANIMALSTORE_OWNER_KEY="+given))
	wantStatus(t, newClient(t, s, given).get(t, "/v1/pets"), 200, "")
	s.stop()
	if strings.Contains(s.output(), given) || s.stdout.String() != "" {
		t.Errorf("a key from the environment must not be printed.\n%s", s.output())
	}

	// It isn't imported where keys already exist, and the log says so.
	const other = "another-secret-0123456789"
	s = start(t, onDatabase(s.database), withEnv("ANIMALSTORE_OWNER_KEY="+other))
	wantStatus(t, newClient(t, s, given).get(t, "/v1/pets"), 200, "")
	wantStatus(t, newClient(t, s, other).get(t, "/v1/pets"), 401, "invalid_api_key")
	s.stop()
	if !strings.Contains(s.stderr.String(), "was not imported") || strings.Contains(s.output(), other) {
		t.Errorf("want a message in the log, without the key.\n%s", s.output())
	}

	// A key that could never work is refused at the start.
	for _, bad := range []string{"short", "ast_live_" + strings.Repeat("x", 38), strings.Repeat("x", 201), "white space 0123456789"} {
		s := launch(t, withEnv("ANIMALSTORE_OWNER_KEY="+bad))
		if code := s.wait(); code != 2 || !strings.Contains(s.stderr.String(), "key") || len(bad) > 5 && strings.Contains(s.output(), bad) {
			t.Errorf("owner key %q: exit code %d, want 2 and a reason without the key.\n%s", bad, code, s.output())
		}
	}
}

func TestPortTaken(t *testing.T) {
	t.Parallel()
	holder := start(t)
	s := launch(t, onAddress(strings.TrimPrefix(holder.url, "http://")))
	if code := s.wait(); code != 1 || !strings.Contains(s.stderr.String(), "--listen") {
		t.Errorf("exit code %d, want 1 and advice.\n%s", code, s.output())
	}
	if out := s.stdout.String(); out != "" {
		t.Errorf("a server that does not serve prints %q", out)
	}
	// The failed start hasn't used up the owner key.
	s = start(t, onDatabase(s.database))
	wantStatus(t, newClient(t, s, s.ownerKey()).get(t, "/v1/pets"), 200, "")
}

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

// TestHealthcheckTLS uses a certificate that nothing on this machine trusts, like one
// for a public name that resolves elsewhere.
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

	// With a key, there is nothing to report.
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

func TestRequestIDs(t *testing.T) {
	t.Parallel()
	s := start(t, withArgs("--access-log"))
	c := newClient(t, s, s.ownerKey())
	if a := c.do(t, "GET", "/v1/pets", "", "X-Request-Id", "mine-4711"); a.header.Get("X-Request-Id") != "mine-4711" {
		t.Errorf("a client's request id is echoed as %q", a.header.Get("X-Request-Id"))
	}
	ids := []string{"mine-4711"}
	for _, path := range []string{"/v1/pets", "/v1/nowhere", "/livez", "/v1/pets/99"} {
		a := c.get(t, path)
		id := a.header.Get("X-Request-Id")
		if id == "" || strings.Contains(strings.Join(ids, " "), id) {
			t.Errorf("GET %s has request id %q after %q", path, id, ids)
		}
		ids = append(ids, id)
	}
	for _, id := range ids {
		line := regexp.MustCompile(`msg=request request_id=` + regexp.QuoteMeta(id) + ` client=127\.0\.0\.1 method=GET path=\S+ status=\d+ `)
		testenv.Eventually(t, "request "+id+" is in the access log", func() bool { return line.MatchString(s.stderr.String()) })
	}

	quiet := start(t)
	newClient(t, quiet, quiet.ownerKey()).get(t, "/v1/pets")
	quiet.stop()
	if strings.Contains(quiet.stderr.String(), "msg=request") {
		t.Errorf("requests are logged without --access-log:\n%s", quiet.stderr)
	}
}

func TestJSONLog(t *testing.T) {
	t.Parallel()
	s := start(t, withArgs("--access-log", "--log-format", "json"))
	newClient(t, s, "").get(t, "/v1/pets")
	s.stop()
	seen := map[string]bool{}
	for lines := bufio.NewScanner(strings.NewReader(s.stderr.String())); lines.Scan(); {
		var line struct {
			Time  time.Time
			Level string
			Msg   string
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil || line.Time.IsZero() || line.Level == "" || line.Msg == "" {
			t.Errorf("the line %s: %v", lines.Text(), err)
		}
		seen[line.Msg] = true
	}
	for _, msg := range []string{"serving", "request", "stopped"} {
		if !seen[msg] {
			t.Errorf("no line says %q:\n%s", msg, s.stderr)
		}
	}
}
