package ratelimit_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/ratelimit"
	"animalstore/internal/ratelimit/redistest"
)

// TestRedisOverTLS: rediss:// encrypts and verifies the server's certificate.
func TestRedisOverTLS(t *testing.T) {
	cert, key := selfSigned(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	_, port, _ := net.SplitHostPort(addr)
	redistest.Start(t, "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert, "--tls-auth-clients", "no")
	for _, c := range []struct {
		url      string
		fallback bool
	}{
		{"rediss://" + addr + "?skip_verify=true", false},
		{"rediss://" + addr, true}, // not signed by a trusted authority
		{"redis://" + addr, true},  // in clear text
	} {
		r, err := ratelimit.NewRedis(ratelimit.RedisConfig{URL: c.url, Environment: animalstore.Production, Store: newMemoryStore(), Now: time.Now, Log: discard})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if got := r.Stats().Fallback; got != c.fallback {
			t.Errorf("%s: got fallback %v, want %v", c.url, got, c.fallback)
		}
	}
}

func selfSigned(t *testing.T) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: cert}, keyFile: {Type: "EC PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile
}
