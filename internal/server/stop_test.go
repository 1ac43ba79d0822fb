package server

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"animalstore"
	"animalstore/internal/db"
)

// hangingDB is a database whose polls don't return, not even when their context ends.
type hangingDB struct {
	db.DB
	release chan struct{}
}

func (d hangingDB) PublishEvents(context.Context) (int64, error) {
	<-d.release
	return 0, context.Canceled
}

func (d hangingDB) WebhookWork(context.Context, animalstore.Time) (db.WebhookWork, error) {
	<-d.release
	return db.WebhookWork{}, context.Canceled
}

// TestStopWithHangingReads: a stop waits for a read that hangs, but not longer than it may.
func TestStopWithHangingReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s, _ := runInBubble(t, func(cfg *Config) {
			cfg.Hooks.NoBackground = false
			cfg.Hooks.WrapDB = func(d db.DB) db.DB { return hangingDB{d, release} }
		})
		synctest.Wait()
		began := time.Now()
		time.AfterFunc(time.Minute, func() { close(release) })
		s.stop()
		if err := s.wait(t); err != nil {
			t.Errorf("got %v, want no error", err)
		}
		if took, most := time.Since(began), stopTimeout+closeTimeout; took > most {
			t.Errorf("the server stopped after %v, want %v at most", took, most)
		}
		time.Sleep(2 * time.Minute) // a bubble waits for its goroutines: release those that hang
	})
}

// delayedClient is a client of a server that is stopping.
type delayedClient struct {
	t      *testing.T
	conn   net.Conn
	r      *bufio.Reader
	secret string
}

func (c delayedClient) send(path, header string) {
	io.WriteString(c.conn, "GET "+path+" HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer "+c.secret+"\r\n"+header+"\r\n")
}

// want reads a response with the status. It reports whether the server closes the connection.
func (c delayedClient) want(status int) (closes bool) {
	c.t.Helper()
	res, err := http.ReadResponse(c.r, nil)
	if err != nil {
		c.t.Errorf("got %v, want %d", err, status)
		return true
	}
	io.Copy(io.Discard, res.Body)
	if res.StatusCode != status {
		c.t.Errorf("got %s, want %d", res.Status, status)
	}
	return res.Close
}

// TestShutdownDelay: during the delay only /readyz changes. Then the server stops as it does
// without a delay, and at once if the rest of the delay is skipped.
func TestShutdownDelay(t *testing.T) {
	for name, test := range map[string]struct{ delay, skipped, want time.Duration }{
		"none":    {0, 0, 0},
		"full":    {15 * time.Second, 0, 15 * time.Second},
		"skipped": {5 * time.Minute, 7 * time.Second, 7 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, network := runInBubble(t, func(cfg *Config) {
					cfg.ShutdownDelay = test.delay
					if test.skipped > 0 {
						cfg.SkipDelay = func(ctx context.Context) (context.Context, context.CancelFunc) {
							return context.WithTimeout(ctx, test.skipped)
						}
					}
				})
				owner, err := s.CreateOwnerKey(t.Context(), "")
				if err != nil {
					t.Fatal(err)
				}
				connect := func() delayedClient {
					conn := network.Connect()
					return delayedClient{t, conn, bufio.NewReader(conn), owner.Secret}
				}
				kept, stream, poll := connect(), connect(), connect()
				kept.send("/v1/pets", "")
				kept.want(200)
				stream.send("/v1/events", "Accept: text/event-stream\r\n")
				streaming, err := http.ReadResponse(stream.r, nil)
				if err != nil || streaming.StatusCode != 200 {
					t.Fatalf("got %v, %v, want a stream", streaming, err)
				}
				var streamed, polled time.Time
				go func() {
					io.Copy(io.Discard, streaming.Body)
					streamed = time.Now()
				}()
				poll.send("/v1/events?after=latest&wait=30", "")
				go func() {
					poll.want(200)
					polled = time.Now()
				}()
				synctest.Wait()
				began := time.Now()
				s.stop()
				if test.want > 0 {
					time.Sleep(test.want - time.Second)
					kept.send("/v1/pets", "")
					fresh, check := connect(), connect()
					fresh.send("/v1/pets", "")
					check.send("/readyz", "")
					if kept.want(200) || fresh.want(200) {
						t.Error("a connection is closed during the delay")
					}
					check.want(503)
					fresh.conn.Close()
					check.conn.Close()
				}
				if err := s.wait(t); err != nil {
					t.Errorf("got %v, want no error", err)
				}
				synctest.Wait()
				for what, at := range map[string]time.Time{"the server": time.Now(), "the stream": streamed, "the long poll": polled} {
					if took := at.Sub(began); took < test.want || took > test.want+time.Second {
						t.Errorf("%s ended after %v, want %v", what, took, test.want)
					}
				}
			})
		})
	}
}
