//go:build unix

package redistest

import (
	"io"
	"net"
	"sync"
	"testing"
)

// Proxy is a connection between a limiter and its Redis that can be cut.
type Proxy struct {
	Addr string

	mu     sync.Mutex
	target string
	cut    bool
	conns  map[net.Conn]struct{}
}

// NewProxy starts a proxy to a server.
func NewProxy(t testing.TB, s *Server) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Addr: l.Addr().String(), target: s.Addr, conns: map[net.Conn]struct{}{}}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { p.serve(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		p.Cut()
		running.Wait()
	})
	return p
}

// URL is the address for a limiter, which waits as long as LongTimeout.
func (p *Proxy) URL() string { return "redis://" + p.Addr + "?" + LongTimeout }

// Cut closes every connection, and each new one immediately.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = true
	p.closeAll()
}

// Restore allows connections again.
func (p *Proxy) Restore() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = false
}

// Drop closes every connection but allows new ones.
func (p *Proxy) Drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closeAll()
}

// Redirect makes new connections lead to another server. Existing ones stay.
func (p *Proxy) Redirect(s *Server) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = s.Addr
}

func (p *Proxy) closeAll() {
	for c := range p.conns {
		c.Close()
	}
}

// track registers c for closeAll and returns where to connect it, or "" if the proxy is
// cut.
func (p *Proxy) track(c net.Conn) (target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut {
		return ""
	}
	p.conns[c] = struct{}{}
	return p.target
}

func (p *Proxy) forget(c net.Conn) {
	c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

func (p *Proxy) serve(client net.Conn) {
	defer p.forget(client)
	target := p.track(client)
	if target == "" {
		return
	}
	server, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	var back sync.WaitGroup
	back.Go(func() {
		io.Copy(client, server)
		client.Close()
	})
	io.Copy(server, client)
	server.Close()
	back.Wait()
}
