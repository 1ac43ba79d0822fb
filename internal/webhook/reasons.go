package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"animalstore"
)

// handshakeError says that TLS could not begin.
type handshakeError struct{ error }

func (e *handshakeError) Unwrap() error { return e.error }

// describe says why there was no response within a timeout, without anything that a
// receiver or resolver sent.
func describe(err error, timeout time.Duration) animalstore.OptionalText {
	var dns *net.DNSError
	var handshake *handshakeError
	var network net.Error
	switch {
	case errors.Is(err, errNotAllowed):
		return "the host resolves to an address that webhooks may not reach"
	case errors.Is(err, errPlainHTTP):
		return "http is not allowed for this address"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout() && !errors.As(err, &dns):
		return animalstore.OptionalText(fmt.Sprintf("no response within %s", timeout))
	case errors.As(err, &dns):
		return "the host name does not resolve"
	case errors.As(err, &handshake):
		return describeHandshake(handshake)
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the connection was refused"
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return "the host cannot be reached"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "the connection was closed without a response"
	}
	return "no valid response"
}

func describeHandshake(err error) animalstore.OptionalText {
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
	}
	return "the TLS handshake failed: TLS 1.2 or later and HTTP/1.1 are required"
}
