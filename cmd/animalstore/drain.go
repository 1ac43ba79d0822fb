package main

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// busyConns knows the connections that owe somebody an answer: those a request
// is served on, and new ones, whose request is on its way.
//
// [http.Server.Shutdown] waits for the former only. A request that it reads a
// moment after its call, on a connection accepted before, it drops without a
// word. So the listener is closed first, and Shutdown is called when nobody
// waits any more.
type busyConns struct {
	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

// track is an [http.Server] ConnState hook.
func (b *busyConns) track(c net.Conn, state http.ConnState) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch state {
	case http.StateNew, http.StateActive:
		b.conns[c] = struct{}{}
	default:
		delete(b.conns, c)
	}
}

func (b *busyConns) none() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.conns) == 0
}

// wait returns when there are none, or with ctx's error when it ends. New ones
// must not come up any more.
func (b *busyConns) wait(ctx context.Context) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !b.none() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
