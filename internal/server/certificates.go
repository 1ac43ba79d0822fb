package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"time"
)

// certificates are what a server serves HTTPS with.
type certificates interface {
	config() *tls.Config
	// run keeps them current until the context ends.
	run(ctx context.Context)
	// covers reports whether a client that asks for this host accepts one of them.
	covers(host string) bool
	// expiries are when they expire, each by a name that it is for.
	expiries() map[string]time.Time
}

// CertificateError reports certificates that a server can't start with.
type CertificateError struct {
	ACME bool // it is about Config.ACME, otherwise about the files
	Err  error
}

func (e *CertificateError) Error() string { return "certificates: " + e.Err.Error() }
func (e *CertificateError) Unwrap() error { return e.Err }

// openCertificates returns nil for a server of plain HTTP.
func openCertificates(cfg Config) (certificates, error) {
	switch {
	case cfg.CertFile != "":
		return loadCertificateFiles(cfg.CertFile, cfg.KeyFile, cfg.CertificateCheck, cfg.Log)
	case cfg.ACME != nil:
		return openACME(*cfg.ACME, cfg.Version, cfg.Log)
	case cfg.TLS != nil:
		return fixedCertificates{cfg.TLS}, nil
	case cfg.RedirectListen != "":
		return nil, errors.New("redirecting to HTTPS needs a certificate")
	}
	return nil, nil
}

// fixedCertificates never change.
type fixedCertificates struct{ tls *tls.Config }

func (c fixedCertificates) config() *tls.Config { return c.tls }

func (c fixedCertificates) run(context.Context) {}

func (c fixedCertificates) covers(host string) bool {
	for _, cert := range c.leaves() {
		if cert.VerifyHostname(host) == nil {
			return true
		}
	}
	return false
}

func (c fixedCertificates) expiries() map[string]time.Time {
	times := map[string]time.Time{}
	for _, cert := range c.leaves() {
		times[certificateName(cert)] = cert.NotAfter
	}
	return times
}

func (c fixedCertificates) leaves() (leaves []*x509.Certificate) {
	for _, cert := range c.tls.Certificates {
		if leaf, err := x509.ParseCertificate(cert.Certificate[0]); err == nil {
			leaves = append(leaves, leaf)
		}
	}
	return leaves
}

// certificateName is a name that a certificate is for.
func certificateName(cert *x509.Certificate) string {
	switch {
	case len(cert.DNSNames) > 0:
		return cert.DNSNames[0]
	case len(cert.IPAddresses) > 0:
		return cert.IPAddresses[0].String()
	}
	return cert.Subject.CommonName
}
