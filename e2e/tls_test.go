package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// selfSigned creates a certificate for 127.0.0.1 and the files a server needs.
func selfSigned(t *testing.T) (certFile, keyFile string, roots *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "test"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, kind string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	roots = x509.NewCertPool()
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots.AddCert(cert)
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", keyDER), roots
}

func TestTLS(t *testing.T) {
	t.Parallel()
	certFile, keyFile, roots := selfSigned(t)
	s := start(t, withArgs("--tls-cert", certFile, "--tls-key", keyFile))
	if !strings.HasPrefix(s.url, "https://") {
		t.Fatalf("the address is %s, want https", s.url)
	}
	for _, version := range []string{"HTTP/1.1", "HTTP/2.0"} {
		c := newClient(t, s, s.ownerKey())
		c.http.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: roots}
		c.http.Transport.(*http.Transport).ForceAttemptHTTP2 = version == "HTTP/2.0"
		wantStatus(t, c.do(t, "POST", "/v1/pets", `{"name":"Rex","categoryId":1}`), 201, "")
		resp, err := c.http.Get(s.url + "/livez")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.Proto != version {
			t.Errorf("got %s, want %s", resp.Proto, version)
		}
	}
	if _, err := newClient(t, s, "").try("GET", "/livez", ""); err == nil {
		t.Error("a client that does not know the certificate accepts it")
	}
	if status, _ := paste(t, s.printed(curlLine), "CURL_CA_BUNDLE="+certFile); status != "200" {
		t.Errorf("the printed curl line gives %s, want 200", status)
	}
	// Idle connections of both kinds are open still.
	begun := time.Now()
	s.stop()
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("it took %v to stop a server with idle connections", took)
	}
}
