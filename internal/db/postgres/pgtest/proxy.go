//go:build unix

package pgtest

import (
	"bytes"
	"net"
	"net/url"
	"sync"
	"testing"
)

// Proxy is a proxy between clients and a server that can lose a response.
type Proxy struct {
	listener net.Listener
	target   string

	mu   sync.Mutex
	lose []string
	lost chan struct{} // closed when a response was lost
	all  map[net.Conn]struct{}
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

// URL returns a URL that leads to the server through the proxy.
func (p *Proxy) URL(dsn string) string {
	u, err := url.Parse(dsn)
	if err != nil {
		return ""
	}
	u.Host = p.listener.Addr().String()
	return u.String()
}

// LoseResponse waits for a client to send these texts, in this order on one connection.
// It forwards the message with the last of them, discards the server's response and
// closes both connections. Then it closes the channel.
func (p *Proxy) LoseResponse(texts ...string) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lose, p.lost = texts, make(chan struct{})
	return p.lost
}

// loses reports whether a connection on which that many of the texts were sent should
// lose its next response, and how many were sent including this message.
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

	mu     sync.Mutex
	sent   int           // how many of the texts of LoseResponse
	losing chan struct{} // not nil: the server's messages are discarded
}

func (c *conversation) end() {
	c.client.Close()
	c.server.Close()
	c.proxy.mu.Lock()
	defer c.proxy.mu.Unlock()
	delete(c.proxy.all, c.client)
	delete(c.proxy.all, c.server)
}

// up forwards what the client sends.
func (c *conversation) up() {
	defer c.end()
	b := make([]byte, 64<<10)
	for {
		n, err := c.client.Read(b)
		if err != nil {
			return
		}
		c.mu.Lock()
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

// down forwards what the server sends.
func (c *conversation) down() {
	defer c.end()
	b := make([]byte, 64<<10)
	for {
		n, err := c.server.Read(b)
		if err != nil {
			return
		}
		c.mu.Lock()
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
