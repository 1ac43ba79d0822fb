//go:build unix

package pgtest

import (
	"bytes"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"
)

// Proxy is a proxy between clients and a server that can lose or delay responses.
type Proxy struct {
	listener net.Listener

	mu     sync.Mutex
	target string
	lose   string        // "": nothing
	lost   chan struct{} // closed when a response was lost
	delay  time.Duration
	conns  []net.Conn
}

// NewProxy starts a Proxy to the server of a URL. It ends with the test.
func NewProxy(t testing.TB, dsn string) *Proxy {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: l, target: u.Host}
	go p.serve()
	t.Cleanup(func() {
		l.Close()
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, c := range p.conns {
			c.Close()
		}
	})
	return p
}

// URL returns a URL that leads to the server through the proxy.
func (p *Proxy) URL(dsn string) string {
	u, err := url.Parse(dsn)
	if err != nil {
		return ""
	}
	u.Host = p.listener.Addr().String()
	return u.String()
}

// LeadTo makes new connections lead to another server, like an address that moves. Those
// that exist stay.
func (p *Proxy) LeadTo(s *Server) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = s.Address()
}

func (p *Proxy) leadsTo() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.target
}

// LoseResponse waits for a client to send a text. It forwards the message, discards the
// server's response and closes both connections. Then it closes the channel.
func (p *Proxy) LoseResponse(text string) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lose, p.lost = text, make(chan struct{})
	return p.lost
}

// Delay delays every response from now on.
func (p *Proxy) Delay(by time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = by
}

func (p *Proxy) awaitDelay() {
	p.mu.Lock()
	delay := p.delay
	p.mu.Unlock()
	time.Sleep(delay)
}

// loses returns the channel to close if the response to a message should be lost, or nil.
func (p *Proxy) loses(message []byte) chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lose == "" || !bytes.Contains(message, []byte(p.lose)) {
		return nil
	}
	p.lose = ""
	return p.lost
}

func (p *Proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.leadsTo())
		if err != nil {
			client.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, client, server)
		p.mu.Unlock()
		losing := make(chan chan struct{}, 1)
		go forward(client, server, func(message []byte) bool {
			if lost := p.loses(message); lost != nil {
				losing <- lost
			}
			return true
		})
		go forward(server, client, func([]byte) bool {
			p.awaitDelay()
			select {
			case lost := <-losing:
				close(lost)
				return false
			default:
				return true
			}
		})
	}
}

// forward copies messages until one connection ends or pass returns false. Then it closes
// both.
func forward(from, to net.Conn, pass func(message []byte) bool) {
	defer from.Close()
	defer to.Close()
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		if err != nil || !pass(b[:n]) {
			return
		}
		if _, err := to.Write(b[:n]); err != nil {
			return
		}
	}
}
