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
	"time"

	"github.com/jackc/pgx/v5"
)

// Variable names a server to take databases of, as a postgres:// URL.
const Variable = "ANIMALSTORE_TEST_POSTGRES"

// oldest is the oldest major version that animalstore works with.
const oldest = 15

// Settings are lines for postgresql.conf, such as "fsync=on".
type Settings []string

// usual makes a server quick to start and quick to forget.
var usual = Settings{"fsync=off", "max_connections=300", "autovacuum=off", "log_min_messages=warning", "shared_buffers=32MB"}

// shared is the server of tests that only need a database.
var shared struct {
	mu     sync.Mutex
	server *Server
}

// Shared returns a server that all tests of a process have in common, and starts
// it if need be. TestMain has to call Close at the end.
func Shared(t testing.TB) *Server {
	t.Helper()
	if dsn := os.Getenv(Variable); dsn != "" {
		return named(t, dsn)
	}
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.server == nil {
		s, err := start(findBinaries(t), nil)
		if err != nil {
			t.Fatal(err)
		}
		shared.server = s
	}
	return shared.server
}

// Close ends the server of Shared.
func Close() {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.server != nil {
		shared.server.remove()
		shared.server = nil
	}
}

// Start starts a server that is the test's own and is removed when that ends.
// Its settings come on top of the usual ones, which include fsync=off.
func Start(t testing.TB, settings ...string) *Server {
	t.Helper()
	s, err := start(findBinaries(t), settings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.remove)
	return s
}

// findBinaries returns the directory of a server's programs, or ends the test.
func findBinaries(t testing.TB) string {
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
	why := fmt.Sprintf("no PostgreSQL %d or newer is installed: run scripts/setup, or name a server in %s", oldest, Variable)
	if os.Getenv("CI") == "true" {
		t.Fatal(why)
	}
	t.Skip(why)
	return ""
}

// major is the version in a path such as /usr/lib/postgresql/15/bin.
func major(dir string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(dir)))
	return n
}

// named is a server that somebody else runs.
func named(t testing.TB, dsn string) *Server {
	t.Helper()
	base, err := url.Parse(dsn)
	if err != nil {
		t.Fatalf("%s is not a URL", Variable) // which may hold a password
	}
	return &Server{base: base}
}

var databases atomic.Int64

// NewDatabase makes an empty database, or one like template if that is not "",
// and returns its URL.
func (s *Server) NewDatabase(t testing.TB, template string) string {
	t.Helper()
	name := fmt.Sprintf("test_%d_%d", os.Getpid(), databases.Add(1))
	if template == "" {
		template = "template0"
	}
	s.MustExec(t, "postgres", fmt.Sprintf("CREATE DATABASE %s TEMPLATE %s", name, template))
	if s.process == nil { // other servers are thrown away whole
		t.Cleanup(func() {
			if err := s.Exec(context.Background(), "postgres", "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)"); err != nil {
				t.Errorf("drop a database: %v", err)
			}
		})
	}
	return s.URL(name)
}

// Name is the name of the database in a URL.
func Name(dsn string) string {
	u, err := url.Parse(dsn)
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(u.Path, "/")
}

// URL is the address of a database on the server.
func (s *Server) URL(database string) string {
	u := *s.base
	u.Path = "/" + database
	return u.String()
}

// Address is where the server listens, as host:port.
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

// MustExec is Exec where an error ends the test.
func (s *Server) MustExec(t testing.TB, database, statement string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := s.Exec(ctx, database, statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// FreeAddress is an address on this machine on which a server can be started,
// and started again: see freePort.
func FreeAddress(t testing.TB) string {
	t.Helper()
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint("127.0.0.1:", port)
}

// freePort finds a port below those that the system gives to connections, so
// that none of them takes it while a server is down for a moment.
func freePort() (int, error) {
	for range 1000 {
		port := 15000 + int(nextPort.Add(1)+int64(os.Getpid())*37)%15000
		l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port))
		if err == nil {
			l.Close()
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port")
}

var nextPort atomic.Int64
