package server_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"slices"
	"testing"
	"time"
)

func selfSigned(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotAfter:     time.Now().Add(time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// TestHandshakes: nothing older than TLS 1.2 is spoken, and there only suites that
// encrypt and authenticate in one step.
func TestHandshakes(t *testing.T) {
	cfg := localConfig(t)
	cfg.TLS = &tls.Config{Certificates: []tls.Certificate{selfSigned(t)}, NextProtos: []string{"h2", "http/1.1"}}
	s := run(t, cfg)
	dial := func(version uint16, suite uint16) error {
		client := &tls.Config{InsecureSkipVerify: true, MinVersion: version, MaxVersion: version}
		if suite != 0 {
			client.CipherSuites = []uint16{suite}
		}
		conn, err := (&tls.Dialer{Config: client}).DialContext(t.Context(), "tcp", s.Addr().String())
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
