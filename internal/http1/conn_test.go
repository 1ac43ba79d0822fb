package http1

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// wire is a net.Pipe connection, so that synctest controls its clock. It counts how
// often its deadlines are set.
type wire struct {
	net.Conn
	reads, writes int
}

func (w *wire) SetReadDeadline(t time.Time) error  { w.reads++; return w.Conn.SetReadDeadline(t) }
func (w *wire) SetWriteDeadline(t time.Time) error { w.writes++; return w.Conn.SetWriteDeadline(t) }

// newPipe returns a server's connection and the client's end of it.
func newPipe(t *testing.T) (*conn, *wire, net.Conn) {
	far, near := net.Pipe()
	w := &wire{Conn: near}
	t.Cleanup(func() { far.Close(); near.Close() })
	return newConn(w, &Listener{conns: map[*conn]struct{}{}}), w, far
}

func TestDeadline(t *testing.T) {
	past := time.Unix(1, 0)
	for _, c := range []struct {
		name string
		set  []time.Duration // from the start; 0 means none, negative the past
		want time.Duration   // when a read fails; 0 means never
	}{
		{"one", []time.Duration{5 * time.Second}, 5 * time.Second},
		{"sooner counts", []time.Duration{60 * time.Second, 5 * time.Second}, 5 * time.Second},
		{"later counts", []time.Duration{5 * time.Second, 60 * time.Second}, 60 * time.Second},
		{"none after some", []time.Duration{5 * time.Second, 0}, 0},
		{"the past", []time.Duration{5 * time.Second, -1}, time.Nanosecond},
		{"the past, then none", []time.Duration{-1, 0, 7 * time.Second}, 7 * time.Second},
		{"just after the timer", []time.Duration{-1, maxTimer + time.Millisecond}, maxTimer + time.Millisecond},
	} {
		for side, op := range map[string]func(*conn) error{
			"read":  func(c *conn) error { _, err := c.Read(make([]byte, 1)); return err },
			"write": func(c *conn) error { _, err := c.Write([]byte("x")); return err },
		} {
			t.Run(c.name+"/"+side, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					near, _, far := newPipe(t)
					start := time.Now()
					for _, d := range c.set {
						at := start.Add(d)
						switch {
						case d == 0:
							at = time.Time{}
						case d < 0:
							at = past
						}
						set := near.SetReadDeadline
						if side == "write" {
							set = near.SetWriteDeadline
						}
						if err := set(at); err != nil {
							t.Fatal(err)
						}
					}
					if c.want == 0 { // the client ends it
						time.AfterFunc(time.Hour+time.Second, func() { far.Close() })
					}
					err := op(near)
					took := time.Since(start)
					timedOut := errors.Is(err, os.ErrDeadlineExceeded)
					switch {
					case c.want == 0 && (timedOut || took < time.Hour):
						t.Errorf("failed after %v with %v, want it to wait", took, err)
					case c.want > 0 && (!timedOut || took.Round(time.Millisecond) != c.want.Round(time.Millisecond)):
						t.Errorf("failed after %v with %v, want a timeout after %v", took, err, c.want)
					}
				})
			})
		}
	}
}

// TestDeadlineMovedEarlier sets a deadline while a read is waiting, as net/http does
// to get its connection back.
func TestDeadlineMovedEarlier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, _, _ := newPipe(t)
		start := time.Now()
		near.SetReadDeadline(start.Add(10 * time.Second))
		time.AfterFunc(2*time.Second, func() { near.SetReadDeadline(time.Unix(1, 0)) })
		_, err := near.Read(make([]byte, 1))
		if took := time.Since(start); !errors.Is(err, os.ErrDeadlineExceeded) || took != 2*time.Second {
			t.Errorf("got %v after %v, want a timeout after 2s", err, took)
		}
	})
}

// TestWriteAcrossEarlyTimer has a timer fire too early during a write: nothing may
// be sent twice or left out.
func TestWriteAcrossEarlyTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, _, far := newPipe(t)
		start := time.Now()
		near.SetWriteDeadline(start.Add(time.Second))
		near.SetWriteDeadline(start.Add(time.Minute))
		got := make(chan []byte)
		go func() {
			half := make([]byte, 3)
			io.ReadFull(far, half)
			time.Sleep(2 * time.Second) // the first deadline passes halfway
			rest, _ := io.ReadAll(far)
			got <- append(half, rest...)
		}()
		n, err := near.Write([]byte("abcdef"))
		near.Conn.Close()
		if text := <-got; n != 6 || err != nil || string(text) != "abcdef" {
			t.Errorf("wrote %d, %v and %q arrived, want all of abcdef once", n, err, text)
		}
	})
}

// TestDeadlinesAreCheap counts how often timers are set when net/http serves a
// thousand requests on one connection.
func TestDeadlinesAreCheap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, w, far := newPipe(t)
		const requests = 1000
		go func() {
			for range requests {
				far.Write([]byte("x"))
			}
		}()
		for range requests {
			now := time.Now()
			near.SetReadDeadline(now.Add(60 * time.Second))
			if _, err := near.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			near.SetReadDeadline(time.Time{})
			near.SetReadDeadline(now.Add(5 * time.Second))
			near.SetReadDeadline(now.Add(10 * time.Second))
			near.SetWriteDeadline(now.Add(15 * time.Second))
			near.SetReadDeadline(time.Unix(1, 0))
			near.SetReadDeadline(time.Time{})
			time.Sleep(time.Millisecond)
		}
		if w.reads > 2*requests+10 || w.writes > 1 {
			t.Errorf("the read and write timers were set %d and %d times in %d requests, want at most 2 per request and 1", w.reads, w.writes, requests)
		}
	})
}
