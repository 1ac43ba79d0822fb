//go:build unix

package pgtest

import (
	"bytes"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
)

// Proxy stands between clients and a server, counts what they say to each other
// and can lose an answer.
type Proxy struct {
	listener net.Listener
	target   string
	turns    atomic.Int64

	mu   sync.Mutex
	lose []string
	lost chan struct{} // closed when an answer was lost
	all  map[net.Conn]struct{}
}

// NewProxy makes a Proxy to the server of a URL. It ends with the test.
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
	p := &Proxy{listener: l, target: u.Host, all: map[net.Conn]struct{}{}}
	go p.serve()
	t.Cleanup(func() {
		l.Close()
		p.mu.Lock()
		defer p.mu.Unlock()
		for c := range p.all {
			c.Close()
		}
	})
	return p
}

// URL is a URL of the server by way of the proxy.
func (p *Proxy) URL(dsn string) string {
	u, err := url.Parse(dsn)
	if err != nil {
		return ""
	}
	u.Host = p.listener.Addr().String()
	return u.String()
}

// Turns is how often a client has begun to speak, as it does once in every round
// trip.
func (p *Proxy) Turns() int64 { return p.turns.Load() }

// LoseAnswer waits for a client to send these texts, one after the other on one
// connection. The message with the last of them is passed on, but the server's
// answer is thrown away, and both are hung up on. The channel is closed once that
// has been done.
func (p *Proxy) LoseAnswer(texts ...string) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lose, p.lost = texts, make(chan struct{})
	return p.lost
}

// loses tells whether a connection on which that many of the texts were sent is
// to lose its next answer, and how many were sent with this message.
func (p *Proxy) loses(message []byte, sent int) (lost chan struct{}, now int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if sent >= len(p.lose) || !bytes.Contains(message, []byte(p.lose[sent])) {
		return nil, sent
	}
	if sent+1 < len(p.lose) {
		return nil, sent + 1
	}
	p.lose = nil
	return p.lost, 0
}

func (p *Proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			client.Close()
			continue
		}
		p.mu.Lock()
		p.all[client], p.all[server] = struct{}{}, struct{}{}
		p.mu.Unlock()
		c := &conversation{proxy: p, client: client, server: server}
		go c.up()
		go c.down()
	}
}

// conversation is one connection.
type conversation struct {
	proxy          *Proxy
	client, server net.Conn

	mu       sync.Mutex
	speaking bool          // the client spoke last
	sent     int           // of the texts in whose wake an answer is to be lost
	losing   chan struct{} // not nil: what the server says is thrown away
}

func (c *conversation) end() {
	c.client.Close()
	c.server.Close()
	c.proxy.mu.Lock()
	defer c.proxy.mu.Unlock()
	delete(c.proxy.all, c.client)
	delete(c.proxy.all, c.server)
}

// up passes on what the client says.
func (c *conversation) up() {
	defer c.end()
	b := make([]byte, 64<<10)
	for {
		n, err := c.client.Read(b)
		if err != nil {
			return
		}
		c.mu.Lock()
		if !c.speaking {
			c.speaking = true
			c.proxy.turns.Add(1)
		}
		var lost chan struct{}
		if lost, c.sent = c.proxy.loses(b[:n], c.sent); lost != nil {
			c.losing = lost
		}
		c.mu.Unlock()
		if _, err := c.server.Write(b[:n]); err != nil {
			return
		}
	}
}

// down passes on what the server says.
func (c *conversation) down() {
	defer c.end()
	b := make([]byte, 64<<10)
	for {
		n, err := c.server.Read(b)
		if err != nil {
			return
		}
		c.mu.Lock()
		c.speaking = false
		losing := c.losing
		c.mu.Unlock()
		if losing != nil {
			close(losing)
			return
		}
		if _, err := c.client.Write(b[:n]); err != nil {
			return
		}
	}
}
