package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	"animalstore"
	"animalstore/internal/db"
)

var (
	errNotHTTP   = errors.New("the response is not HTTP")
	errOnlyHTTP2 = errors.New("the response is HTTP/2")
)

// handshakeError says that TLS could not begin.
type handshakeError struct{ error }

func (e *handshakeError) Unwrap() error { return e.error }

// checkedConn refuses to read from a receiver that doesn't speak HTTP/1. net/http would
// wait for the end of a line, and its error wouldn't say why.
type checkedConn struct {
	net.Conn
	start []byte // what was read so far, until it is enough to know
}

func (c *checkedConn) Read(b []byte) (int, error) {
	const http1 = "HTTP/"
	n, err := c.Conn.Read(b)
	if len(c.start) == len(http1) {
		return n, err
	}
	c.start = append(c.start, b[:min(n, len(http1)-len(c.start))]...)
	switch start := string(c.start); {
	case strings.HasPrefix(http1, start):
		return n, err
	case len(start) > 3 && start[0] == 0 && start[3] == 4: // a SETTINGS frame
		return 0, errOnlyHTTP2
	}
	return 0, errNotHTTP
}

// describe says why there was no response, without anything that a receiver or resolver sent.
func describe(err error) animalstore.Reason {
	var dns *net.DNSError
	var handshake *handshakeError
	var network net.Error
	switch {
	case errors.Is(err, errNotAllowed):
		return "the host resolves to an address that webhooks may not reach"
	case errors.Is(err, errPlainHTTP):
		return "http is not allowed for this address"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout() && !errors.As(err, &dns):
		return animalstore.Reason(fmt.Sprintf("no response within %s", db.AttemptTimeout))
	case errors.As(err, &dns):
		return "the host name does not resolve"
	case errors.As(err, &handshake):
		return describeHandshake(handshake)
	case errors.Is(err, errOnlyHTTP2):
		return onlyHTTP2
	case errors.Is(err, errNotHTTP):
		return "the response is not HTTP"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the connection was refused"
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return "the host cannot be reached"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "the connection was closed without a response"
	}
	return "no valid response"
}

const onlyHTTP2 animalstore.Reason = "the receiver accepts only HTTP/2: HTTP/1.1 is required"

// Alerts with which a receiver refuses a handshake.
const (
	alertProtocolVersion       tls.AlertError = 70
	alertNoApplicationProtocol tls.AlertError = 120
)

func describeHandshake(err error) animalstore.Reason {
	var invalid x509.CertificateInvalidError
	var host x509.HostnameError
	var issuer x509.UnknownAuthorityError
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && time.Now().Before(invalid.Cert.NotBefore):
		return "the certificate is not valid yet"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the certificate has expired"
	case errors.As(err, &host):
		return "the certificate is for another host"
	case errors.As(err, &issuer):
		return "the certificate's issuer is not trusted"
	case errors.As(err, &certificate):
		return "the certificate is not valid"
	case errors.As(err, &record) && string(record.RecordHeader[:]) == "HTTP/":
		return "the receiver speaks http on this port, not https"
	case errors.As(err, &record):
		return "the receiver doesn't use TLS on this port"
	case isAlert(err, alertProtocolVersion):
		return "there is no common TLS version: TLS 1.2 or later is required"
	case isAlert(err, alertNoApplicationProtocol):
		return onlyHTTP2
	}
	return "the TLS handshake failed"
}

// isAlert reports whether the receiver sent an alert. Package tls doesn't export the type
// of the alerts that it received.
func isAlert(err error, alert tls.AlertError) bool {
	var remote *net.OpError
	return errors.As(err, &remote) && remote.Op == "remote error" && remote.Err.Error() == alert.Error()
}
