package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"animalstore/internal/testenv"
)

// selfSigned returns a certificate and its key in PEM.
func selfSigned(t *testing.T, serial int64) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial),
		NotAfter:     time.Now().Add(time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
}

// useCertificate makes a server use a new certificate.
func useCertificate(t *testing.T, cfg *Config, serial int64) {
	t.Helper()
	if cfg.CertFile == "" {
		dir := t.TempDir()
		cfg.CertFile, cfg.KeyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	}
	cert, key := selfSigned(t, serial)
	if err := errors.Join(os.WriteFile(cfg.CertFile, cert, 0o600), os.WriteFile(cfg.KeyFile, key, 0o600)); err != nil {
		t.Fatal(err)
	}
}

// TestHandshakes: the server accepts nothing older than TLS 1.2, and in TLS 1.2 only
// suites that encrypt and authenticate in one step.
func TestHandshakes(t *testing.T) {
	cfg := localConfig(t)
	useCertificate(t, &cfg, 1)
	s := run(t, cfg)
	dial := func(version uint16, suite uint16) error {
		client := &tls.Config{InsecureSkipVerify: true, MinVersion: version, MaxVersion: version}
		if suite != 0 {
			client.CipherSuites = []uint16{suite}
		}
		conn, err := (&tls.Dialer{Config: client}).DialContext(t.Context(), "tcp", s.listener.Addr().String())
		if err == nil {
			conn.Close()
		}
		return err
	}
	for _, version := range []uint16{tls.VersionTLS10, tls.VersionTLS11} {
		if dial(version, 0) == nil {
			t.Errorf("%s: got a handshake, want none", tls.VersionName(version))
		}
	}
	if err := dial(tls.VersionTLS13, 0); err != nil {
		t.Errorf("TLS 1.3: %v", err)
	}
	good := []uint16{
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
		tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
		tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
	}
	for _, suite := range append(tls.CipherSuites(), tls.InsecureCipherSuites()...) {
		if !slices.Contains(suite.SupportedVersions, tls.VersionTLS12) {
			continue
		}
		if got, want := dial(tls.VersionTLS12, suite.ID) == nil, slices.Contains(good, suite.ID); got != want {
			t.Errorf("TLS 1.2 with %s: handshake is %t, want %t", suite.Name, got, want)
		}
	}
}

// TestCertificateSwap: a new certificate is used for new connections.
func TestCertificateSwap(t *testing.T) {
	cfg := localConfig(t)
	useCertificate(t, &cfg, 1)
	s := run(t, cfg)
	useCertificate(t, &cfg, 2)
	testenv.Eventually(t, "the new certificate is used", func() bool { return serialOf(t, s.listener.Addr().String()) == 2 })
}

// serialOf is the serial number of the certificate that a new connection gets.
func serialOf(t *testing.T, addr string) int64 {
	t.Helper()
	conn, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	leaf := conn.ConnectionState().PeerCertificates[0]
	return leaf.SerialNumber.Int64()
}
