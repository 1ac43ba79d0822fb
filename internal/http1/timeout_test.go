package http1

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"animalstore/internal/testenv"
)

// connect starts a server in a synctest bubble and connects to it.
func connect(t *testing.T, handler http.HandlerFunc) net.Conn {
	t.Helper()
	p := testenv.NewPipes()
	serve(t, NewServer(p, newServer(handler), anyTarget, discard))
	client := p.Connect()
	t.Cleanup(func() { client.Close() })
	return client
}

// TestTimeouts: clients keep a connection waiting.
func TestTimeouts(t *testing.T) {
	for _, c := range []struct {
		name string
		send []string
		want time.Duration
		wait time.Duration // between the parts it sends
	}{
		{"nothing sent", nil, 5 * time.Second, 2 * time.Second},
		{"half a head", []string{"GET / HT"}, 5 * time.Second, 2 * time.Second},
		{"a head byte by byte", []string{"G", "E", "T", " ", "/"}, 5 * time.Second, 2 * time.Second},
		{"idle", []string{simpleGet}, 60 * time.Second, 2 * time.Second},
		{"idle, and then half a head", []string{simpleGet, "GET / HT"}, 7 * time.Second, 2 * time.Second},
		{"half a head after a response", []string{simpleGet + "GET / HT"}, 5 * time.Second, 2 * time.Second},
		{"idle, and then a byte", []string{simpleGet, "G"}, 45 * time.Second, 40 * time.Second},
		{"idle, and then bytes slowly", []string{simpleGet, "G", "E", "T", " ", "/"}, 7 * time.Second, 2 * time.Second},
		{"idle, and a byte near the end", []string{simpleGet, "G"}, 60 * time.Second, 58 * time.Second},
		{"idle, and then a slow head", []string{simpleGet, "G", "E", "T", " ", "/"}, 6200 * time.Millisecond, 1200 * time.Millisecond},
		{"a late first byte", []string{"", "G"}, 5 * time.Second, 4700 * time.Millisecond},
		{"a late first byte and half a body", []string{"", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhi"}, 10 * time.Second, 4 * time.Second},
		{"half a body", []string{"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhi"}, 10 * time.Second, 2 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := connect(t, func(w http.ResponseWriter, r *http.Request) {
					io.ReadAll(r.Body)
					io.WriteString(w, "hello")
				})
				start := time.Now()
				var sender sync.WaitGroup
				sender.Go(func() {
					for i, text := range c.send {
						if i > 0 {
							time.Sleep(c.wait)
						}
						if text == "" {
							continue
						}
						if _, err := io.WriteString(client, text); err != nil {
							return
						}
					}
				})
				io.Copy(io.Discard, client)
				if took := time.Since(start); took < c.want || took > c.want+100*time.Millisecond {
					t.Errorf("cut after %v, want %v", took, c.want)
				}
				client.Close()
				sender.Wait()
			})
		})
	}
}

// TestSlowReader: a client doesn't read its response.
func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := connect(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") })
		io.WriteString(client, simpleGet)
		start := time.Now()
		client.Read(make([]byte, 1))
		client.SetReadDeadline(start.Add(time.Hour))
		time.Sleep(16 * time.Second)
		if _, err := io.ReadAll(client); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("the connection is open after 16s, want it cut after 15s")
		}
	})
}

// TestSlowHandler: timeouts apply to clients; a handler may take any amount of time.
func TestSlowHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := connect(t, func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-r.Context().Done():
				io.WriteString(w, "cut")
			case <-time.After(time.Hour):
				io.WriteString(w, "done")
			}
		})
		for range 2 {
			if got := get(t, client); got != "done" {
				t.Errorf("got %q, want done", got)
			}
		}
	})
}
