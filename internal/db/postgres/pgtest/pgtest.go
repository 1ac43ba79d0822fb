//go:build unix

package pgtest

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"animalstore/internal/testenv"
)

// oldest is the oldest major version that animalstore supports.
const oldest = 15

// settings are lines for postgresql.conf that make a server start and stop quickly.
var settings = []string{"fsync=off", "max_connections=300", "autovacuum=off", "log_min_messages=warning", "shared_buffers=32MB"}

// shared is the server for tests that only need a database.
var shared struct {
	mu     sync.Mutex
	server *Server
}

// Shared returns a server that all tests of a process share, and starts it if needed.
// TestMain has to call Close at the end.
func Shared(t testing.TB) *Server {
	t.Helper()
	testenv.Slow(t)
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.server == nil {
		shared.server = start(t)
	}
	return shared.server
}

// Close stops the server of Shared and removes what Start keeps.
func Close() {
	removeTemplate()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.server != nil {
		shared.server.remove()
		shared.server = nil
	}
}

// Start starts a server for one test and removes it when the test ends.
func Start(t testing.TB) *Server {
	t.Helper()
	testenv.Slow(t)
	s := start(t)
	t.Cleanup(s.remove)
	return s
}

// Binaries returns the directory of PostgreSQL's programs, or ends the test.
func Binaries(t testing.TB) string {
	t.Helper()
	dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	slices.SortFunc(dirs, func(a, b string) int { return major(b) - major(a) })
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			dirs = append([]string{filepath.Dir(path)}, dirs...)
		}
	}
	for _, dir := range dirs {
		out, err := exec.Command(filepath.Join(dir, "postgres"), "--version").Output()
		if fields := strings.Fields(string(out)); err == nil && len(fields) >= 3 {
			if version, _ := strconv.Atoi(strings.SplitN(fields[2], ".", 2)[0]); version >= oldest {
				return dir
			}
		}
	}
	testenv.Missing(t, "no PostgreSQL %d or newer is installed: make check installs it as root with apt-get", oldest)
	return ""
}

// major returns the version in a path such as /usr/lib/postgresql/15/bin.
func major(dir string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(dir)))
	return n
}

var databases atomic.Int64

// NewDatabase creates a database, empty or as a copy of template, and returns its URL.
func (s *Server) NewDatabase(t testing.TB, template string) string {
	t.Helper()
	name := fmt.Sprintf("test_%d_%d", os.Getpid(), databases.Add(1))
	if template == "" {
		template = "template0"
	}
	// Copying files takes half of the work, where nothing has to reach a disk.
	s.MustExec(t, "postgres", fmt.Sprintf("CREATE DATABASE %s TEMPLATE %s STRATEGY file_copy", name, template))
	return s.URL(name)
}

// DeleteAll makes a store like a new one. That takes much less than a new database, for
// which PostgreSQL writes hundreds of files, and than TRUNCATE, which writes some for each
// table.
const DeleteAll = `
	DELETE FROM deliveries; DELETE FROM webhooks; DELETE FROM webhook_position;
	DELETE FROM events; DELETE FROM event_queue; DELETE FROM idempotency_records;
	DELETE FROM photo_parts; DELETE FROM photos; DELETE FROM photo_total;
	DELETE FROM orders; DELETE FROM pets; DELETE FROM name_entries; DELETE FROM categories;
	DELETE FROM console_sessions; DELETE FROM console_forms; DELETE FROM failures; UPDATE failure_total SET stored = 0;
	DELETE FROM limit_states; DELETE FROM usage; DELETE FROM key_secrets; DELETE FROM keys;
	SELECT setval(pg_get_serial_sequence(name, 'id'), 1, false)
		FROM unnest(ARRAY['pets', 'photos', 'orders', 'keys', 'webhooks', 'deliveries', 'failures']) AS name;`

// Name returns the name of the database in a URL.
func Name(dsn string) string {
	u, err := url.Parse(dsn)
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(u.Path, "/")
}

// URL returns the URL of a database on the server.
func (s *Server) URL(database string) string {
	u := *s.base
	u.Path = "/" + database
	return u.String()
}

// Address returns where the server listens, as host:port.
func (s *Server) Address() string { return s.base.Host }

// Exec runs a statement in a database.
func (s *Server) Exec(ctx context.Context, database, statement string) error {
	conn, err := pgx.Connect(ctx, s.URL(database))
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	_, err = conn.Exec(ctx, statement)
	return err
}

// MustExec is like Exec, but an error ends the test.
func (s *Server) MustExec(t testing.TB, database, statement string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testenv.Deadline)
	defer cancel()
	if err := s.Exec(ctx, database, statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// FreeAddress returns a loopback address on which a server can be started, and
// restarted: see freePort.
func FreeAddress(t testing.TB) string {
	t.Helper()
	return fmt.Sprint("127.0.0.1:", freePort(t))
}

// freePort finds a port below the range for outgoing connections, so that none of them
// takes it while a server is being restarted.
func freePort(t testing.TB) int {
	t.Helper()
	for range 1000 {
		port := 15000 + int(nextPort.Add(1)+int64(os.Getpid())*37)%15000
		l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port))
		if err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no free port")
	return 0
}

var nextPort atomic.Int64
