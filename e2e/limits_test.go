package e2e

import (
	"net"
	"strings"
	"testing"
	"time"
)

// within checks how long something took. The upper bound is generous, because
// machines can be slow; the lower one is not, because clocks do not run fast.
func within(t *testing.T, begun time.Time, least, most time.Duration, what string) {
	t.Helper()
	if took := time.Since(begun); took < least || took > most {
		t.Errorf("%s took %v, want %v to %v", what, took, least, most)
	}
}

// trickle sends a byte every 100 ms until the connection fails or stop is
// closed: never silent, never done.
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
	// Below the time a whole request may take, or that would do instead.
	within(t, begun, 4500*time.Millisecond, 9*time.Second, "cutting off slow headers")
	s.awaitOnlyListener(time.Minute)
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
			t.Error("the connection of a client that is too slow is kept")
		}
	} else if !wasReset(err) {
		t.Errorf("got %v, want a response or the end", err)
	}
	within(t, begun, 9500*time.Millisecond, 30*time.Second, "cutting off a slow body")
	s.awaitOnlyListener(time.Minute)
}

// TestClientThatDoesNotReadIsCut asks for far more than the system buffers and
// takes none of it.
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
	// Until the first byte comes, the server may not have taken the connection
	// from the system's queue, and would look as if it had closed it.
	if _, err := deaf.r.Peek(1); err != nil {
		t.Fatalf("no response begins: %v", err)
	}
	s.awaitOnlyListener(time.Minute)
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
	if !soak {
		t.Skip("takes more than a minute: set ANIMALSTORE_SOAK=1")
	}
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
