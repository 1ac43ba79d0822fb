//go:build unix

package pgtest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"animalstore/internal/testenv"
)

// PgBouncer starts a PgBouncer in front of the server, given the section [pgbouncer] of its
// configuration without addresses. It returns a function that makes the URL of a database
// lead through it. PgBouncer ends with the test.
func (s *Server) PgBouncer(t testing.TB, section string) (through func(dsn string) string) {
	t.Helper()
	port := freePort(t)
	address := fmt.Sprint("127.0.0.1:", port)
	base := filepath.Join(s.dir, fmt.Sprint("pgbouncer", port))
	config := fmt.Sprintf(`[databases]
* = host=127.0.0.1 port=%d user=animalstore
%s
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
admin_users = animalstore
`, s.port, section, port)
	if err := os.WriteFile(base+".ini", []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(base + ".log")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	p := s.spawn(t, log, syscall.SIGKILL, findPgBouncer(t), base+".ini")
	t.Cleanup(func() {
		select {
		case <-p.exited:
		default:
			syscall.Kill(p.pid, syscall.SIGKILL)
			<-p.exited
		}
	})
	testenv.Eventually(t, "PgBouncer listens", func() bool {
		select {
		case <-p.exited:
			text, _ := os.ReadFile(base + ".log")
			t.Fatalf("PgBouncer has ended:\n%s", text)
		default:
		}
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return func(dsn string) string { return strings.Replace(dsn, s.Address(), address, 1) }
}

// findPgBouncer returns the path of PgBouncer, or ends the test. Debian installs it where
// only root's PATH leads.
func findPgBouncer(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"pgbouncer", "/usr/sbin/pgbouncer"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	testenv.Missing(t, "pgbouncer is not installed: make check installs it as root with apt-get")
	return ""
}
