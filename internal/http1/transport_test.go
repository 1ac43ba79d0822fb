package http1

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"sync"
	"testing"
	"time"
)

// overBoth runs a test without TLS, where config is nil, and with it.
func overBoth(t *testing.T, test func(t *testing.T, config *tls.Config)) {
	t.Helper()
	t.Run("TCP", func(t *testing.T) { test(t, nil) })
	t.Run("TLS", func(t *testing.T) { test(t, serverTLS()) })
}

// serverTLS is a server's configuration, like that of the product.
func serverTLS() *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{certificate()}, NextProtos: []string{"h2", "http/1.1"}}
}

// clientTLS is the configuration of clients that ask for HTTP/1.1. What they write at
// once arrives at once, if it is less than 16 KiB.
var clientTLS = &tls.Config{
	InsecureSkipVerify:          true,
	NextProtos:                  []string{"http/1.1"},
	CurvePreferences:            []tls.CurveID{tls.X25519}, // the cheapest
	ClientSessionCache:          tls.NewLRUClientSessionCache(0),
	DynamicRecordSizingDisabled: true,
}

var certificate = sync.OnceValue(func() tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
})

// dial connects to l, over TLS if l does.
func dial(t testing.TB, l *Listener) net.Conn {
	t.Helper()
	return dialAddr(t, l.Addr().String(), l.tls != nil)
}

func dialAddr(t testing.TB, addr string, secure bool) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	if secure {
		c = tls.Client(c, clientTLS)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(30 * time.Second))
	return c
}

// pipes is a listener for net.Pipe connections, whose clock synctest controls.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (pipes) Addr() net.Addr { return &net.TCPAddr{} }
func (p pipes) Close() error { close(p); return nil }

// connect connects to a listener of p, over TLS unless config is nil. A pipe has no
// buffer, so the server must not send tickets while the client sends a request.
func (p pipes) connect(config *tls.Config) net.Conn {
	client, far := net.Pipe()
	if config != nil {
		config.SessionTicketsDisabled = true
		client = tls.Client(client, clientTLS)
	}
	p <- far
	return client
}
