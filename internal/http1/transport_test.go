package http1

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"
)

// overBoth runs a test without TLS (config is nil) and with it.
func overBoth(t *testing.T, test func(t *testing.T, config *tls.Config)) {
	t.Helper()
	t.Run("TCP", func(t *testing.T) { test(t, nil) })
	t.Run("TLS", func(t *testing.T) { test(t, serverTLS()) })
}

// serverTLS is a server configuration like the product's.
func serverTLS() *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{certificate()}, NextProtos: []string{"h2", "http/1.1"}}
}

// clientTLS is the configuration of clients that request HTTP/1.1. Each write below 16
// KiB arrives in one piece.
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
func dial(t testing.TB, l *Server) net.Conn {
	t.Helper()
	return dialAddr(t, l.inner.Addr().String(), l.tls != nil)
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

// ending is how a conversation ended.
type ending int

const (
	complete ending = iota
	doubtful        // sending failed: responses may be missing
	cutOff          // receiving failed: responses are missing
)

// talk sends the pieces on c and returns the responses. A client that keeps sending to
// a closed connection can lose responses it hasn't read yet.
func talk(t testing.TB, c net.Conn, pieces []string) (responses string, end ending) {
	t.Helper()
	defer c.Close()
	sent := make(chan error, 1)
	go func() {
		for i, piece := range pieces {
			if i > 0 {
				time.Sleep(time.Millisecond) // so that it is read separately
			}
			if _, err := io.WriteString(c, piece); err != nil {
				sent <- err // the server closed the connection
				return
			}
		}
		sent <- closeWrite(c)
	}()
	for br := bufio.NewReaderSize(c, 64<<10); ; {
		text, err := readResponse(br)
		// The system reports a reset only once, perhaps to the sending goroutine. Then
		// this one sees just the end, perhaps in the middle of a response.
		if errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.ErrUnexpectedEOF) {
			return responses, cutOff
		}
		if text != "" {
			responses += text + "\n"
		}
		if err != nil {
			if <-sent != nil {
				end = doubtful
			}
			return responses, end
		}
	}
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
// buffer, so the server must not send tickets while the client is sending a request.
func (p pipes) connect(config *tls.Config) net.Conn {
	client, far := net.Pipe()
	if config != nil {
		config.SessionTicketsDisabled = true
		client = tls.Client(client, clientTLS)
	}
	p <- far
	return client
}

func closeWrite(c net.Conn) error { return c.(interface{ CloseWrite() error }).CloseWrite() }
