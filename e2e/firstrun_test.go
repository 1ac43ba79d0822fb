package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

var (
	liveKey  = regexp.MustCompile(`ast_live_[0-9A-Za-z]{38}\b`)
	testKey  = regexp.MustCompile(`ast_test_[0-9A-Za-z]{38}\b`)
	curlLine = regexp.MustCompile(`(?m)^ *(curl .*)$`)
)

// printed waits for what the server prints at its first start: it comes
// before the log says that it serves, but by another pipe.
func (s *server) printed(pattern *regexp.Regexp) string {
	s.t.Helper()
	var found []string
	eventually(s.t, time.Minute, "it prints "+pattern.String(), func() bool {
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

// paste runs a line in a shell, as a person would, and returns what curl says
// of the response's status.
func paste(t *testing.T, line string, env ...string) (status, output string) {
	t.Helper()
	needs(t, "curl")
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

// TestFirstRunFromSource does what make run does, ended by Ctrl-C.
func TestFirstRunFromSource(t *testing.T) {
	onlyForRelease(t, "builds from source")
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

	// One that could never work is refused at the start.
	for _, bad := range []string{"short", "ast_live_" + strings.Repeat("x", 38), strings.Repeat("x", 201), "white space 0123456789"} {
		s := launch(t, withEnv("ANIMALSTORE_OWNER_KEY="+bad))
		if code := s.wait(); code != 2 || !strings.Contains(s.stderr.String(), "key") || len(bad) > 5 && strings.Contains(s.output(), bad) {
			t.Errorf("owner key %q: exit code %d, want 2 and a reason without the key.\n%s", bad, code, s.output())
		}
	}
}

func TestTwoServersOneFile(t *testing.T) {
	t.Parallel()
	s := start(t)
	second := launch(t, onDatabase(s.database))
	if code := second.wait(); code != 1 {
		t.Errorf("the second server's exit code is %d, want 1", code)
	}
	if got := second.stderr.String(); !strings.Contains(got, "another animalstore serves this file") || strings.Contains(got, "serving") {
		t.Errorf("the second server says %q", got)
	}
	wantStatus(t, newClient(t, s, s.ownerKey()).get(t, "/v1/pets"), 200, "")
	s.kill()
	start(t, onDatabase(s.database)).stop() // a kill leaves no lock behind
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

func TestForeignFileIsRefused(t *testing.T) {
	t.Parallel()
	path := newDatabase(t)
	if err := os.WriteFile(path, []byte(strings.Repeat("not a database\n", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	// More than once: this once depended on chance.
	for range 5 {
		s := launch(t, onDatabase(path))
		if code := s.wait(); code != 1 || !strings.Contains(s.stderr.String(), "is not a SQLite database") || strings.Contains(s.stderr.String(), "goroutine") {
			t.Fatalf("exit code %d, want 1 and a reason.\n%s", code, s.output())
		}
	}
}
