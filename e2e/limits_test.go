package e2e

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"animalstore/internal/testenv"
)

// within checks how long something took. The upper bound is generous, because machines
// can be slow; the lower one is not, because clocks don't run fast.
func within(t *testing.T, begun time.Time, least, most time.Duration, what string) {
	t.Helper()
	if took := time.Since(begun); took < least || took > most {
		t.Errorf("%s took %v, want %v to %v", what, took, least, most)
	}
}

// trickle sends a byte every 100 ms until the connection fails or stop is closed: it is
// never silent and never finished.
func trickle(c *rawConn, b string, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(100 * time.Millisecond):
			if _, err := c.Write([]byte(b)); err != nil {
				return
			}
		}
	}
}

func TestSlowHeaderIsCut(t *testing.T) {
	t.Parallel()
	s := start(t)
	silent, slow := dial(t, s), dial(t, s)
	begun := time.Now()
	slow.send(t, "GET /v1/pets HTTP/1.1\r\nHost: test\r\nX-Slow: ")
	stop := make(chan struct{})
	defer close(stop)
	go trickle(slow, "x", stop)
	for name, c := range map[string]*rawConn{"silent": silent, "slow": slow} {
		if a, _, err := c.receive(); err == nil {
			t.Errorf("the %s client is answered with %d %s, want the end", name, a.status, a.body)
		}
	}
	// This is less than a whole request may take; otherwise that limit could be the
	// cause.
	within(t, begun, 4500*time.Millisecond, 9*time.Second, "cutting off slow headers")
	s.awaitOnlyListener()
}

func TestSlowBodyIsCut(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := dial(t, s)
	whole := message("POST", "/v1/pets", s.ownerKey(), newPetBody(strings.Repeat("x", 1000), 1, "sold"))
	begun := time.Now()
	c.send(t, whole[:len(whole)-900])
	stop := make(chan struct{})
	defer close(stop)
	go trickle(c, "x", stop)
	if a, closes, err := c.receive(); err == nil {
		wantStatus(t, a, 400, "malformed_json")
		if !closes {
			t.Error("the connection of a client that is too slow stays open")
		}
	} else if !wasReset(err) {
		t.Errorf("got %v, want a response or the end", err)
	}
	within(t, begun, 9500*time.Millisecond, 30*time.Second, "cutting off a slow body")
	s.awaitOnlyListener()
}

// TestClientThatDoesNotReadIsCut requests far more than the system buffers and reads
// none of it.
func TestClientThatDoesNotReadIsCut(t *testing.T) {
	t.Parallel()
	s := start(t)
	key := loadKey(t, s.database)
	c := newClient(t, s, key)
	for range 100 {
		wantStatus(t, c.do(t, "POST", "/v1/pets", newPetBody(strings.Repeat("🦊", 1024), 1, "sold")), 201, "")
	}
	c.http.CloseIdleConnections()
	deaf := dial(t, s)
	deaf.Conn.(*net.TCPConn).SetReadBuffer(4096)
	begun := time.Now()
	for range 100 {
		deaf.send(t, message("GET", "/v1/pets?limit=100", key, ""))
	}
	// Until the first byte arrives, the server may not have accepted the connection
	// from the system's queue, and it would look closed.
	if _, err := deaf.r.Peek(1); err != nil {
		t.Fatalf("no response begins: %v", err)
	}
	s.awaitOnlyListener()
	within(t, begun, 9*time.Second, 60*time.Second, "cutting off a client that does not read")
}

func TestHeaderSize(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, c := range []struct{ size, status int }{{15 << 10, 200}, {16<<10 + 200, 431}, {1 << 20, 431}} {
		conn := dial(t, s)
		m := message("GET", "/v1/pets", s.ownerKey(), "")
		m = strings.TrimSuffix(m, "\r\n") + "X-Long: "
		m += strings.Repeat("x", c.size-len(m)-4) + "\r\n\r\n"
		go conn.Write([]byte(m)) // the server may answer before it has read all
		a, _, err := conn.receive()
		if err != nil && !(c.status == 431 && wasReset(err)) || err == nil && a.status != c.status {
			t.Errorf("a header of %d bytes: got %d, %v, want %d", c.size, a.status, err, c.status)
		}
	}
	wantStatus(t, newClient(t, s, s.ownerKey()).get(t, "/v1/pets"), 200, "")
}

// TestIdleConnectionIsClosed takes more than a minute.
func TestIdleConnectionIsClosed(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	s := start(t)
	c := dial(t, s)
	c.SetDeadline(time.Now().Add(3 * time.Minute))
	begun := time.Now()
	c.send(t, message("GET", "/livez", "", ""))
	wantStatus(t, c.mustReceive(t), 200, "")
	if _, err := c.r.ReadByte(); err == nil {
		t.Error("the server sends something without a request")
	}
	within(t, begun, 59*time.Second, 2*time.Minute, "closing an idle connection")
}

// sockets counts the sockets the server has open.
func (s *server) sockets() int {
	s.t.Helper()
	dir := filepath.Join("/proc", strconv.Itoa(s.cmd.Process.Pid), "fd")
	fds, err := os.ReadDir(dir)
	if err != nil {
		testenv.Missing(s.t, "no /proc to count sockets in: %v", err)
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
func (s *server) awaitOnlyListener() {
	s.t.Helper()
	testenv.Eventually(s.t, "all connections but the listener are closed", func() bool { return s.sockets() == 1 })
}

// TestClientsGoAway disconnects clients at every stage of a request. Each request is
// carried out completely or not at all, and no connection is left open.
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
	s.awaitOnlyListener()

	c := newClient(t, s, key)
	stored := c.allPets(t, 0)
	seen := map[string]bool{}
	for _, p := range stored {
		stage := strings.TrimRight(p.Name, " 0123456789")
		if stage != "right after sending" && stage != "by a reset" {
			t.Errorf("got %+v stored, but its request never arrived completely", p)
		}
		if want := (pet{p.ID, p.Name, 7, "pending"}); p != want || seen[p.Name] {
			t.Errorf("got %+v stored, want %+v, once", p, want)
		}
		seen[p.Name] = true
	}
	t.Logf("%d of %d pets whose clients left without the response are stored", len(stored), 2*times)

	wantStatus(t, c.do(t, "POST", "/v1/pets", body("after")), 201, "")
	c.http.CloseIdleConnections()
	s.awaitOnlyListener()
	if log := s.stderr.String(); strings.Contains(log, "panic") || strings.Contains(log, "level=ERROR") {
		t.Errorf("the log has errors about clients that left:\n%s", log)
	}
	// At its end, the Go runtime lists every goroutine.
	s.signal(syscall.SIGQUIT)
	s.wait()
	stacks := s.stderr.String()
	if !strings.Contains(stacks, "goroutine ") {
		t.Fatalf("no stacks to look at:\n%s", stacks)
	}
	for _, serve := range []string{"net/http.(*conn).serve(", "animalstore/internal/http1.(*conn).serve("} {
		if n := strings.Count(stacks, serve); n > 0 {
			t.Errorf("%d goroutines are still in %s…) for connections that are gone:\n%s", n, serve, stacks)
		}
	}
}

// TestOutOfDescriptors opens more connections than the server has descriptors. Open
// connections are still served, including those that need net/http, and new clients after
// the attack. http1 has a test that they are served without delay.
func TestOutOfDescriptors(t *testing.T) {
	const descriptors, attackers, clients = 2048, 5000, 20
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < attackers+1000 {
		testenv.Missing(t, "this test needs %d file descriptors, but only %d are allowed: raise ulimit -n", attackers+1000, limit.Cur)
	}
	s := start(t, withWrapper("sh", "-c", fmt.Sprintf(`ulimit -n %d; exec "$0" "$@"`, descriptors)))
	addr := strings.TrimPrefix(s.url, "http://")
	key := loadKey(t, s.database)
	plain := "GET /v1/pets?limit=1 HTTP/1.1\r\nHost: " + addr + "\r\nAuthorization: Bearer " + key + "\r\n\r\n"
	other := strings.Replace(plain, "\r\n\r\n", "\r\nPragma: no-cache\r\n\r\n", 1) // net/http serves it
	open := make([]net.Conn, clients)
	for i := range open {
		var err error
		if open[i], err = net.Dial("tcp", addr); err != nil {
			t.Fatal(err)
		}
		defer open[i].Close()
		if err := exchange(open[i], plain); err != nil {
			t.Fatalf("before the attack: %v", err)
		}
	}

	end := attack(t, addr, attackers)
	testenv.Eventually(t, "the server is out of descriptors", func() bool {
		return strings.Contains(s.stderr.String(), "too many open files")
	})
	var waiting sync.WaitGroup
	for _, c := range open { // all at once, before the attackers' time is up
		waiting.Go(func() {
			if err := exchange(c, other); err != nil {
				t.Errorf("during the attack: %v", err)
			}
		})
	}
	waiting.Wait()
	end()
	testenv.Eventually(t, "new clients are served again", func() bool {
		c, err := net.DialTimeout("tcp", addr, 10*time.Second)
		if err != nil {
			return false
		}
		defer c.Close()
		return exchange(c, plain) == nil
	})
	if line := lineWith(s.stderr.String(), "too many open files"); !strings.Contains(line, "level=ERROR") {
		t.Errorf("got log line %q, want it at level ERROR", line)
	}
}

// attack opens connections that send one byte each, until end is called.
func attack(t *testing.T, addr string, count int) (end func()) {
	t.Helper()
	var (
		mu    sync.Mutex
		conns []net.Conn
		wg    sync.WaitGroup
	)
	for range 50 {
		wg.Go(func() {
			for range count / 50 {
				c, err := net.DialTimeout("tcp", addr, 2*time.Second)
				if err != nil {
					continue // the server's queue is full too
				}
				c.Write([]byte("G"))
				mu.Lock()
				conns = append(conns, c)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	end = sync.OnceFunc(func() {
		for _, c := range conns {
			c.Close()
		}
	})
	t.Cleanup(end)
	return end
}

// exchange sends a request, whose response must be 200.
func exchange(c net.Conn, request string) error {
	c.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(c, request); err != nil {
		return err
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("got %s, want 200", res.Status)
	}
	return nil
}

// lineWith returns the first line of text that contains part.
func lineWith(text, part string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, part) {
			return line
		}
	}
	return ""
}

// TestFastPathFlag: the flag and its variable leave simple requests to net/http, as does
// TLS. The goroutine of an open connection shows which one serves it.
func TestFastPathFlag(t *testing.T) {
	certFile, keyFile, _ := selfSigned(t)
	for _, test := range []struct {
		name string
		with option
		fast bool
	}{
		{"default", withArgs(), true},
		{"flag", withArgs("--fast-path=false"), false},
		{"variable", withEnv("ANIMALSTORE_FAST_PATH=false"), false},
		{"TLS", withArgs("--tls-cert", certFile, "--tls-key", keyFile), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, withOps(), test.with)
			client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
			defer client.CloseIdleConnections()
			res, err := client.Get(s.url + "/v1/pets")
			if err != nil {
				t.Fatal(err)
			}
			io.Copy(io.Discard, res.Body)
			res.Body.Close()
			if res.StatusCode != http.StatusUnauthorized {
				t.Errorf("got %d, want 401", res.StatusCode)
			}
			_, goroutines := s.ops("/debug/pprof/goroutine?debug=2")
			if got := strings.Contains(goroutines, "serveSimple"); got != test.fast {
				t.Errorf("got a connection on the fast path: %t, want %t", got, test.fast)
			}
		})
	}
}
