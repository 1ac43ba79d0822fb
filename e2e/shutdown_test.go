package e2e

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"animalstore/internal/testenv"
)

// TestTerminate stops a server under load with SIGTERM: every request that was sent
// gets a complete response.
//
// A refused connection isn't a failure, nor is a new one that is reset because the port
// closed before it was accepted. Anything other than a complete response is: the end of
// the stream, a partial response, a timeout.
func TestTerminate(t *testing.T) {
	t.Parallel()
	for range testenv.Count(1, 30) {
		testTerminate(t, start(t))
	}
}

func TestTerminateHTTPS_Slow(t *testing.T) {
	t.Parallel()
	certFile, keyFile, _ := selfSigned(t)
	for range testenv.Count(1, 30) {
		testTerminate(t, start(t, withArgs("--tls-cert", certFile, "--tls-key", keyFile)))
	}
}

// TestShutdownDelay: after a first SIGTERM only /readyz changes, and a second one ends the
// delay but not the process.
func TestShutdownDelay(t *testing.T) {
	t.Parallel()
	s := start(t, withArgs("--shutdown-delay", "10m"))
	get := func(path string) (response, bool) {
		c := dial(t, s)
		c.send(t, message("GET", path, "", ""))
		r, closes, err := c.receive()
		if err != nil {
			t.Fatal(err)
		}
		return r, closes
	}
	s.signal(syscall.SIGTERM)
	testenv.Eventually(t, "/readyz is 503", func() bool {
		r, _ := get("/readyz")
		return r.status == 503
	})
	if r, closes := get("/livez"); r.status != 200 || closes {
		t.Errorf("during the delay: got %d, closes %t, want 200 on a connection that stays open", r.status, closes)
	}
	testenv.Eventually(t, "a second signal ends the delay", func() bool {
		s.signal(syscall.SIGTERM) // one within a second doesn't count
		return strings.Contains(s.stderr.String(), "finishing the requests in progress")
	})
	if code := s.wait(); code != 0 || !strings.Contains(s.stderr.String(), "msg=stopped") {
		t.Errorf("exit code %d, want 0 and a clean shutdown:\n%s", code, s.stderr.String())
	}
}

func testTerminate(t *testing.T, s *server) {
	const clients = 32
	key := adminKey(t, s.database)
	load := startRawLoad(t, s, key, clients, true)
	testenv.Eventually(t, "the load is on", func() bool { return load.total() > 10*clients })
	// They can't start earlier, because the server cuts off a header that takes more
	// than five seconds.
	slow := startSlowRequests(t, s, key)
	before := load.total()
	s.signal(syscall.SIGTERM)
	testenv.Eventually(t, "new connections are refused", func() bool {
		c, err := tryDial(s)
		if err == nil {
			c.Close()
		}
		return err != nil
	})
	load.keep(slow.finish(t))
	load.clients.Wait()
	if code := s.wait(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	log := s.stderr.String()
	if strings.Contains(log, "panic") || !strings.Contains(log, "msg=stopped") {
		t.Errorf("the log doesn't report a clean shutdown:\n%s", log)
	}
	if load.total() == before {
		t.Error("no request got a response after the signal: the load is too light")
	}
	load.wantStored(t, s.database, key)
}

// rawLoad are clients that read and add pets on bare connections, which never send a request
// twice. Half of them connect for each request.
type rawLoad struct {
	answered [2]atomic.Int64 // on connections for one request, and on ones that are kept alive
	stopping atomic.Bool
	clients  sync.WaitGroup

	mu           sync.Mutex
	acknowledged []pet
}

// startRawLoad lets clients send requests until they are stopped or, if it may happen, a
// connection is refused.
func startRawLoad(t *testing.T, s *server, key string, clients int, mayRefuse bool) *rawLoad {
	l := &rawLoad{}
	for i := range clients {
		l.clients.Go(func() {
			var conn *rawConn
			for n := 0; !l.stopping.Load(); n++ {
				write := (i+n)%2 == 0
				a, closes, err := request(s, &conn, key, write, fmt.Sprintf("client %d, number %d", i, n))
				if err == errRefused && mayRefuse {
					return
				}
				if err != nil {
					t.Errorf("client %d, request %d: %v", i, n, err)
					return
				}
				switch p, err := decodePet(a.body); {
				case write && a.status == 201 && err == nil:
					l.keep(p)
				case write || a.status != 200:
					t.Errorf("client %d, request %d: got %d %s", i, n, a.status, a.body)
				}
				keptAlive := i / 2 % 2
				l.answered[keptAlive].Add(1)
				if closes || keptAlive == 0 {
					conn.Close()
					conn = nil
				}
			}
		})
	}
	return l
}

func (l *rawLoad) keep(p pet) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acknowledged = append(l.acknowledged, p)
}

func (l *rawLoad) total() int64 { return l.answered[0].Load() + l.answered[1].Load() }

// wantStored checks that a new server has every pet that was acknowledged.
func (l *rawLoad) wantStored(t *testing.T, database, key string) {
	t.Helper()
	all := newLedger()
	for _, p := range l.acknowledged {
		if err := all.add(p); err != nil {
			t.Error(err)
		}
	}
	s := start(t, onDatabase(database))
	if n, which := all.missing(newClient(t, s, key).allPets(t, 0), 0); n > 0 {
		t.Errorf("%d of %d acknowledged pets are lost, such as %q", n, len(all.pets), which)
	}
	s.stop()
}

var errRefused = fmt.Errorf("refused")

// request sends one request on conn, or on a new one if there is none.
func request(s *server, conn **rawConn, key string, write bool, name string) (response, bool, error) {
	if *conn == nil {
		c, err := tryDial(s)
		if errors.Is(err, syscall.ECONNREFUSED) || err != nil && wasReset(err) {
			return response{}, false, errRefused
		} else if err != nil {
			return response{}, false, fmt.Errorf("not refused: %w", err)
		}
		*conn = c
	}
	c := *conn
	m := message("GET", "/v1/pets?status=sold", key, "")
	if write {
		m = message("POST", "/v1/pets", key, newPetBody(name, 1, "sold"))
	}
	var a response
	var closes bool
	_, err := io.WriteString(c, m)
	if err == nil {
		_, err = c.r.Peek(1)
	}
	if err != nil && c.answered == 0 && wasReset(err) {
		c.Close()
		return response{}, false, errRefused
	}
	if err == nil {
		a, closes, err = c.receive()
	}
	if err != nil {
		c.Close()
		err = fmt.Errorf("after %d responses on this connection: %w", c.answered, err)
	}
	return a, closes, err
}

// slowRequests began before the signal and are finished once the server accepts no new
// ones.
type slowRequests struct {
	halfBody, halfHeader, silent *rawConn
	rest                         string // of the body
}

func startSlowRequests(t *testing.T, s *server, key string) *slowRequests {
	t.Helper()
	slow := &slowRequests{halfBody: dial(t, s), halfHeader: dial(t, s), silent: dial(t, s)}
	whole := message("POST", "/v1/pets", key, newPetBody("slow", 1, "pending"))
	slow.rest = whole[len(whole)-10:]
	slow.halfBody.send(t, strings.TrimSuffix(whole, slow.rest))
	slow.halfHeader.send(t, "GET /v1/pets HTTP/1.1\r\nHost: test\r\n")
	// Connections are accepted in order: once a later one is served, all of these were
	// accepted.
	last := dial(t, s)
	last.send(t, message("GET", "/livez", "", ""))
	wantStatus(t, last.mustReceive(t), 200, "")
	return slow
}

// finish returns the pet that was added.
func (slow *slowRequests) finish(t *testing.T) pet {
	t.Helper()
	slow.halfBody.send(t, slow.rest)
	a := slow.halfBody.mustReceive(t)
	wantStatus(t, a, 201, "")
	p, err := decodePet(a.body)
	if err != nil {
		t.Fatal(err)
	}
	slow.halfHeader.send(t, "\r\n")
	wantStatus(t, slow.halfHeader.mustReceive(t), 401, "missing_api_key")
	slow.silent.send(t, message("GET", "/readyz", "", ""))
	a, closes, err := slow.silent.receive()
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, a, 503, "shutting_down")
	if !closes || a.header.Get("Retry-After") == "" {
		t.Errorf("the response of a server that is stopping has headers %v, want Connection: close and Retry-After", a.header)
	}
	return p
}
