package api

import (
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// pipeWriter is the response to a client that reads from the other end of a pipe.
type pipeWriter struct{ net.Conn }

func (pipeWriter) Header() http.Header { return nil }
func (pipeWriter) WriteHeader(int)     {}
func (pipeWriter) FlushError() error   { return nil }

// TestBlockedStream: a client that doesn't read in time is cut off, one that reads slowly
// isn't, and neither keeps its stream from ending.
func TestBlockedStream(t *testing.T) {
	const later = 10 * time.Second
	for _, test := range []struct {
		name  string
		later func(s *Server, client net.Conn, key chan struct{})
		sent  bool
		took  time.Duration
		cut   int64
	}{
		{"the client reads", func(_ *Server, client net.Conn, _ chan struct{}) { client.Read(make([]byte, 100)) }, true, later, 0},
		{"the client doesn't read", func(*Server, net.Conn, chan struct{}) {}, false, followTimes.Write, 1},
		{"its key ends", func(_ *Server, _ net.Conn, key chan struct{}) { close(key) }, false, later, 0},
		{"the server stops", func(s *Server, _ net.Conn, _ chan struct{}) { s.Drain() }, false, later, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, conn := net.Pipe()
				s := &Server{followers: newFollowers(nil), drainBegun: make(chan struct{})}
				key, w := make(chan struct{}), pipeWriter{conn}
				st := &stream{server: s, w: w, control: http.NewResponseController(w), ended: key}
				began := time.Now()
				time.AfterFunc(later, func() { test.later(s, client, key) })
				sent := st.write([]byte("id: 1\n\n"))
				if took := time.Since(began); sent != test.sent || took != test.took || s.followers.cut != test.cut {
					t.Errorf("got sent %t after %v, %d cut off, want %t after %v, %d", sent, took, s.followers.cut, test.sent, test.took, test.cut)
				}
				if over := st.isOver(); over && st.write([]byte("id: 2\n\n")) {
					t.Error("got something sent after the end, want nothing")
				}
			})
		})
	}
}
