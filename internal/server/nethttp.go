package server

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// netHTTP serves everything with net/http.
type netHTTP struct {
	*http.Server
	listener net.Listener
	stopped  chan struct{} // closed when no more connections are accepted

	mu     sync.Mutex
	unread map[net.Conn]bool // connections whose first request hasn't been read
}

func newNetHTTP(srv *http.Server, listener net.Listener) *netHTTP {
	n := &netHTTP{Server: srv, listener: listener, stopped: make(chan struct{}), unread: map[net.Conn]bool{}}
	srv.ConnState = n.trackState
	return n
}

func (n *netHTTP) trackState(conn net.Conn, state http.ConnState) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if state == http.StateNew {
		n.unread[conn] = true
	} else {
		delete(n.unread, conn)
	}
}

func (n *netHTTP) Serve() error {
	defer close(n.stopped)
	if n.TLSConfig != nil {
		return n.ServeTLS(n.listener, "", "")
	}
	return n.Server.Serve(n.listener)
}

// Shutdown implements [frontend]. Requests that are still running when ctx ends are cut
// off.
//
// [http.Server.Shutdown] drops the first request of a connection that was accepted before,
// if it reads it just after the call. So the port is closed first, and the call waits for
// these requests.
func (n *netHTTP) Shutdown(ctx context.Context) error {
	n.listener.Close()
	<-n.stopped
	n.awaitFirstRequests(ctx)
	err := n.Server.Shutdown(ctx)
	if err != nil {
		n.Close()
	}
	return err
}

// awaitFirstRequests returns when every connection has begun its first request, or ctx ends.
// ReadHeaderTimeout limits how long that takes.
func (n *netHTTP) awaitFirstRequests(ctx context.Context) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for waiting := true; waiting; {
		n.mu.Lock()
		waiting = len(n.unread) > 0
		n.mu.Unlock()
		select {
		case <-tick.C: // also the last time: net/http reports a request before it is safe
		case <-ctx.Done():
			return
		}
	}
}
