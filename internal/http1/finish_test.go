package http1

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestFinish: while a handler is stuck, another goroutine can send its response. What the
// handler writes later is lost, and the connection ends.
func TestFinish(t *testing.T) {
	release, returned := make(chan struct{}), make(chan error, 1)
	server := newServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		finished := make(chan struct{})
		go func() {
			defer close(finished)
			w.Header().Set("Content-Type", "text/plain")
			w.Header().Set("Connection", "close")
			w.WriteHeader(http.StatusServiceUnavailable)
			io.WriteString(w, "sorry")
			w.(interface{ Finish() }).Finish()
		}()
		<-release
		<-finished
		w.WriteHeader(http.StatusOK)
		_, err := io.WriteString(w, "too late")
		w.(interface{ Finish() }).Finish()
		returned <- err
	}))
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer // read after the server has stopped
	t.Cleanup(func() {
		if log.Len() > 0 {
			t.Errorf("the log is %s, want nothing", &log)
		}
	})
	l := Listen(tcp, nil, server, anyTarget, slog.New(slog.NewTextHandler(&log, nil)))
	serve(t, server, l)
	c := dial(t, l)
	io.WriteString(c, plainGet+plainGet)
	got, err := io.ReadAll(c) // until the connection ends
	if _, body, _ := strings.Cut(string(got), "\r\n\r\n"); err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 503 ") || body != "sorry" {
		t.Errorf("got %q (%v), want one response and the end of the connection", got, err)
	}
	close(release)
	select {
	case err := <-returned:
		if err == nil {
			t.Error("the late response was written")
		}
	case <-time.After(time.Minute):
		t.Error("the handler doesn't return")
	}
}
