//go:build linux

package e2e

import (
	"bytes"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"
)

// valve is a proxy to PostgreSQL that passes everything up to a certain point, and
// holds back the rest until it is cut. So a test can stop a program in the middle of
// something, always at the same point, however fast the machine is.
type valve struct {
	listener net.Listener
	server   string
	stops    stops
	reached  chan struct{} // closed at the point
	cutOff   chan struct{} // closed to break all connections

	mu          sync.Mutex
	up, down    int64 // bytes that passed, to the server and from it
	isAt, isCut bool
}

// stops are the points at which a valve can hold. The zero value holds nowhere.
type stops struct {
	up, down int64  // after this many bytes to the server, or from it
	before   string // before this reaches the server
	sent     string // after this reached the server, before the response
}

// newValve returns a valve to the server of a postgres:// URL, and the URL that leads
// through it.
func newValve(t testing.TB, database string, at stops) (*valve, string) {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	v := &valve{listener: l, server: u.Host, stops: at, reached: make(chan struct{}), cutOff: make(chan struct{})}
	t.Cleanup(v.cut)
	go v.accept()
	u.Host = l.Addr().String()
	return v, u.String()
}

func (v *valve) accept() {
	for {
		client, err := v.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", v.server)
		if err != nil {
			client.Close()
			continue
		}
		end := sync.OnceFunc(func() {
			client.Close()
			server.Close()
		})
		go func() {
			<-v.cutOff
			end()
		}()
		go func() {
			defer end()
			v.pass(server, client, &v.up)
		}()
		go func() {
			defer end()
			v.pass(client, server, &v.down)
		}()
	}
}

// pass copies until the point is reached or a side ends.
func (v *valve) pass(to, from net.Conn, passed *int64) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		admitted, hold := v.admit(passed, buf[:n])
		if _, err := to.Write(buf[:admitted]); err != nil {
			return
		}
		if hold {
			<-v.cutOff
		}
		if hold || err != nil {
			return
		}
	}
}

// admit returns how much of a chunk passes, and whether everything after it is held.
func (v *valve) admit(passed *int64, chunk []byte) (n int, hold bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	toServer := passed == &v.up
	n = len(chunk)
	limit := v.stops.down
	if toServer {
		limit = v.stops.up
	}
	switch {
	case v.isAt && !(toServer && v.stops.sent != ""):
		n, hold = 0, true
	case limit > 0 && *passed+int64(n) >= limit:
		n, hold = int(limit-*passed), true
	case toServer && v.stops.before != "" && bytes.Contains(chunk, []byte(v.stops.before)):
		n, hold = bytes.Index(chunk, []byte(v.stops.before)), true
	case toServer && v.stops.sent != "" && bytes.Contains(chunk, []byte(v.stops.sent)):
		v.reach() // it passes, but its response doesn't
	}
	*passed += int64(n)
	if hold {
		v.reach()
	}
	return n, hold
}

// reach must be called with the lock held.
func (v *valve) reach() {
	if !v.isAt {
		v.isAt = true
		close(v.reached)
	}
}

// await waits until a program has reached the point.
func (v *valve) await(t testing.TB, what string, program *server) {
	t.Helper()
	select {
	case <-v.reached:
	case <-program.exited:
		t.Fatalf("the program ended before this: %s.\n%s", what, program.output())
	case <-time.After(5 * time.Minute):
		t.Fatalf("not within 5 minutes: %s.\n%s", what, program.output())
	}
}

// cut breaks all connections and accepts no more.
func (v *valve) cut() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.isCut {
		v.isCut = true
		v.listener.Close()
		close(v.cutOff)
	}
}
