// Package certs provides the certificates that a server serves HTTPS with, and keeps
// them current: files that are read again when they change, or certificates from an ACME
// authority. It also redirects plain HTTP to HTTPS.
package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"time"
)

// Certificates are the certificates that a server uses for HTTPS.
type Certificates interface {
	// Config returns the listener's configuration. It accepts TLS 1.2 with
	// [cipherSuites], and later versions.
	Config() *tls.Config
	// Run keeps the certificates current until the context ends.
	Run(ctx context.Context)
	// Covers reports whether one of them is valid for this host.
	Covers(host string) bool
	// Expiries returns when each certificate expires, by one of its names.
	Expiries() map[string]time.Time
}

// cipherSuites are the suites of TLS 1.2 that encrypt and authenticate in one step. The
// CBC suites, which Go still offers by default, have a history of padding attacks,
// and every client of the last ten years supports one of these. TLS 1.3 has no
// others.
var cipherSuites = []uint16{
	tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
	tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
	tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
	tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
	tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
	tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
}

// harden narrows c to safe versions and cipher suites.
func harden(c *tls.Config) *tls.Config {
	c.MinVersion = max(c.MinVersion, tls.VersionTLS12)
	c.CipherSuites = cipherSuites
	return c
}

// nameOf returns one of the names that a certificate is valid for.
func nameOf(cert *x509.Certificate) string {
	switch {
	case len(cert.DNSNames) > 0:
		return cert.DNSNames[0]
	case len(cert.IPAddresses) > 0:
		return cert.IPAddresses[0].String()
	}
	return cert.Subject.CommonName
}
