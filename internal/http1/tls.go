package http1

import (
	"crypto/tls"
	"net"
	"net/http"
	"time"
)

// handshake completes the TLS handshake, if the connection uses TLS, and reports
// whether the client will send HTTP/1. If it won't, or the handshake failed, the
// connection is handed over to net/http, which sees the result of the handshake.
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
	c.started = time.Now() // like net/http, which gives the first request as much time as any other
	state := secure.ConnectionState()
	switch state.NegotiatedProtocol {
	case "", "http/1.1":
		c.secured = &state
		return true
	}
	return false
}

// handshakeTimeout is the timeout net/http uses: the shortest of its timeouts.
func handshakeTimeout(s *http.Server) (shortest time.Duration) {
	for _, timeout := range []time.Duration{s.ReadHeaderTimeout, s.ReadTimeout, s.WriteTimeout} {
		if timeout > 0 && (shortest == 0 || timeout < shortest) {
			shortest = timeout
		}
	}
	return shortest
}

// secureConn is a connection with HTTP/1 over TLS, in the form net/http gets it.
type secureConn struct{ *conn }

// ConnectionState is where net/http gets the TLS field of requests.
func (c secureConn) ConnectionState() tls.ConnectionState { return *c.secured }

// forServer returns the connection in the form net/http should see it. net/http checks
// for HTTP/2 and for an unfinished handshake only on a [tls.Conn]. Once requests have
// been read from that, net/http must continue with the bytes in c.
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

// NetConn returns the socket.
func (c *conn) NetConn() net.Conn { return c.socket }
