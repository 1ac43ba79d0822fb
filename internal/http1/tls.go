package http1

import (
	"crypto/tls"
	"net"
	"net/http"
	"time"
)

// handshake completes the TLS handshake, if the connection has TLS, and reports
// whether the client will send HTTP/1. If it won't, or the handshake failed, the
// connection is net/http's: it finds the handshake done, with its result.
func (c *conn) handshake() bool {
	secure, ok := c.Conn.(*tls.Conn)
	if !ok {
		return true
	}
	c.socket.SetDeadline(deadlineAfter(c.started, handshakeTimeout(c.server.http)))
	if secure.Handshake() != nil {
		return false
	}
	c.socket.SetDeadline(time.Time{})
	c.started = time.Now() // like net/http, which gives the first request as long as any
	state := secure.ConnectionState()
	switch state.NegotiatedProtocol {
	case "", "http/1.1":
		c.secured = &state
		return true
	}
	return false
}

// handshakeTimeout is net/http's: the shortest of its timeouts.
func handshakeTimeout(s *http.Server) (shortest time.Duration) {
	for _, timeout := range []time.Duration{s.ReadHeaderTimeout, s.ReadTimeout, s.WriteTimeout} {
		if timeout > 0 && (shortest == 0 || timeout < shortest) {
			shortest = timeout
		}
	}
	return shortest
}

// secureConn is a connection with HTTP/1 over TLS as net/http gets it.
type secureConn struct{ *conn }

// ConnectionState is what net/http takes for the TLS field of requests.
func (c secureConn) ConnectionState() tls.ConnectionState { return *c.secured }

// forServer returns the connection as net/http should see it. It looks for HTTP/2,
// and for a handshake that isn't done, only on a [tls.Conn]. After requests were read
// from that, net/http needs to continue with the bytes in c.
func (c *conn) forServer() net.Conn {
	secure, ok := c.Conn.(*tls.Conn)
	switch {
	case !ok:
		return c
	case c.secured == nil:
		return secure
	}
	return secureConn{c}
}
