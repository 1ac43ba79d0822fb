//go:build !race

// The race detector makes a pool lose a part of what it is given.

package http1

import (
	"net/http"
	"testing"
)

// TestReuseAllocates: without Reuse, a request takes three allocations for what the
// handler gets.
func TestReuseAllocates(t *testing.T) {
	const requests = 1000
	body := []byte("ok")
	fields := [][2]string{{"Content-Type", "text/plain"}, {"Content-Length", "2"}}
	server := newServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.(interface{ SetFields([][2]string) }).SetFields(fields)
		w.Write(body)
		reuse(w)
	}))
	l := &Listener{server: server, plain: anyTarget, conns: map[*conn]struct{}{}}
	got := testing.AllocsPerRun(5, func() { newConn(&replay{left: requests, requests: []string{benchRequest}}, l).serve() }) / requests
	if got > 0.5 {
		t.Errorf("got %.2f allocations a request, want at most 0.5", got)
	}
}
