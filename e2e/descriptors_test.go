package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestOutOfDescriptors opens more connections than the server has descriptors. Open
// connections are still served without delay, also those that need net/http, and
// new clients soon after the attack.
func TestOutOfDescriptors(t *testing.T) {
	const descriptors, attackers, clients = 2048, 5000, 20
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < attackers+1000 {
		skip(t, "this test needs %d file descriptors, but only %d are allowed: raise ulimit -n", attackers+1000, limit.Cur)
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
		if _, err := exchange(open[i], plain); err != nil {
			t.Fatalf("before the attack: %v", err)
		}
	}

	end := attack(t, addr, attackers)
	eventually(t, 10*time.Second, "the server is out of descriptors", func() bool {
		return strings.Contains(s.stderr.String(), "too many open files")
	})
	took := make([]time.Duration, clients)
	var waiting sync.WaitGroup
	for i, c := range open { // all at once, before the attackers' time is up
		waiting.Go(func() {
			var err error
			if took[i], err = exchange(c, other); err != nil {
				t.Errorf("during the attack: %v", err)
			}
		})
	}
	waiting.Wait()
	end()
	ended := time.Now()

	// The median, because a busy machine may delay any single request.
	slices.Sort(took)
	t.Logf("requests during the attack took %v to %v, in the median %v", took[0], took[clients-1], took[clients/2])
	if median := took[clients/2]; median > 100*time.Millisecond {
		t.Errorf("requests during the attack took %v in the median, want at most 100ms", median)
	}
	eventually(t, 6*time.Second, "new clients are served again", func() bool {
		c, err := net.DialTimeout("tcp", addr, time.Second)
		if err != nil {
			return false
		}
		defer c.Close()
		_, err = exchange(c, plain)
		return err == nil
	})
	t.Logf("a new client was served %v after the attack", time.Since(ended))
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

// exchange sends a request and returns how long its response took, which must be
// 200.
func exchange(c net.Conn, request string) (time.Duration, error) {
	began := time.Now()
	c.SetDeadline(began.Add(10 * time.Second))
	if _, err := io.WriteString(c, request); err != nil {
		return 0, err
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return 0, err
	}
	if res.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("got %s, want 200", res.Status)
	}
	return time.Since(began), nil
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
