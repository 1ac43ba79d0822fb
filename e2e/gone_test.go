package e2e

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// sockets counts the sockets the server has open.
func (s *server) sockets() int {
	s.t.Helper()
	dir := filepath.Join("/proc", strconv.Itoa(s.cmd.Process.Pid), "fd")
	fds, err := os.ReadDir(dir)
	if err != nil {
		skip(s.t, "no /proc to count sockets in: %v", err)
	}
	n := 0
	for _, fd := range fds {
		if target, err := os.Readlink(filepath.Join(dir, fd.Name())); err == nil && strings.HasPrefix(target, "socket:") {
			n++
		}
	}
	return n
}

// awaitOnlyListener waits until all connections are gone.
func (s *server) awaitOnlyListener(atMost time.Duration) {
	s.t.Helper()
	eventually(s.t, atMost, "all connections but the listener are closed", func() bool { return s.sockets() == 1 })
}

// TestClientsGoAway has clients disconnect at every stage of a request. What they
// requested is done completely or not at all, and no connection is left open.
func TestClientsGoAway(t *testing.T) {
	t.Parallel()
	const times = 50
	s := start(t)
	key := loadKey(t, s.database)
	body := func(name string) string { return newPetBody(name, 7, "pending") }
	leave := map[string]func(c *rawConn, name string){
		"in the header": func(c *rawConn, name string) {
			c.send(t, message("POST", "/v1/pets", key, body(name))[:40])
		},
		"in the body": func(c *rawConn, name string) {
			m := message("POST", "/v1/pets", key, body(name))
			c.send(t, m[:len(m)-5])
		},
		"right after sending": func(c *rawConn, name string) {
			c.send(t, message("POST", "/v1/pets", key, body(name)))
		},
		"by a reset": func(c *rawConn, name string) {
			c.send(t, message("POST", "/v1/pets", key, body(name)))
			c.Conn.(*net.TCPConn).SetLinger(0)
		},
		"half way, expecting a response": func(c *rawConn, name string) {
			m := message("POST", "/v1/pets", key, body(name))
			c.send(t, m[:len(m)-5])
			c.Conn.(*net.TCPConn).CloseWrite()
			wantStatus(t, c.mustReceive(t), 400, "malformed_json")
		},
	}
	for stage, f := range leave {
		for n := range times {
			c := dial(t, s)
			f(c, fmt.Sprint(stage, " ", n))
			c.Close()
		}
	}
	s.awaitOnlyListener(time.Minute)

	c := newClient(t, s, key)
	stored := c.allPets(t, 0)
	seen := map[string]bool{}
	for _, p := range stored {
		stage := strings.TrimRight(p.Name, " 0123456789")
		if stage != "right after sending" && stage != "by a reset" {
			t.Errorf("stored is %+v, whose request never arrived completely", p)
		}
		if want := (pet{p.ID, p.Name, 7, "pending"}); p != want || seen[p.Name] {
			t.Errorf("stored is %+v, want %+v, and once", p, want)
		}
		seen[p.Name] = true
	}
	t.Logf("%d of %d pets whose clients left without the response are stored", len(stored), 2*times)

	wantStatus(t, c.do(t, "POST", "/v1/pets", body("after")), 201, "")
	c.http.CloseIdleConnections()
	s.awaitOnlyListener(time.Minute)
	if log := s.stderr.String(); strings.Contains(log, "panic") || strings.Contains(log, "level=ERROR") {
		t.Errorf("the log has errors about clients that left:\n%s", log)
	}
	// The Go runtime's last words list every goroutine.
	s.signal(syscall.SIGQUIT)
	s.wait()
	stacks := s.stderr.String()
	if !strings.Contains(stacks, "goroutine ") {
		t.Fatalf("no stacks to look at:\n%s", stacks)
	}
	if n := strings.Count(stacks, "net/http.(*conn).serve("); n > 0 {
		t.Errorf("%d goroutines still serve connections that are gone:\n%s", n, stacks)
	}
}
