package webhook

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"animalstore"
)

// certificate returns one that is its own issuer.
func certificate(t *testing.T, until time.Time) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: until.Add(-2 * time.Hour), NotAfter: until, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// TestReasons: an owner who reads why an attempt got no response knows what to fix. What
// the receiver sent isn't repeated.
func TestReasons(t *testing.T) {
	t.Parallel()
	now := time.Now()
	good := certificate(t, now.Add(time.Hour))
	expired := certificate(t, now.Add(-time.Minute))
	stranger := certificate(t, now.Add(time.Hour))
	pool := x509.NewCertPool()
	for _, c := range []tls.Certificate{good, expired} {
		pool.AddCert(c.Leaf)
	}
	secure := func(c tls.Certificate) (url string) {
		address, _, _ := holdOpen(t, &tls.Config{Certificates: []tls.Certificate{c}}, "")
		return "https://" + address
	}
	insecure := func(text string) (url string) {
		address, _, _ := holdOpen(t, nil, text)
		return "https://" + address
	}
	trusting := &tls.Config{RootCAs: pool}
	sender := NewSender(SenderConfig{Networks: NewNetworks(loopback), TLS: trusting, Timeout: time.Hour})
	defer sender.Close()
	impatient := NewSender(SenderConfig{Networks: NewNetworks(loopback), TLS: trusting, Timeout: 100 * time.Millisecond})
	defer impatient.Close()
	closing := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer closing.Close()
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	for _, test := range []struct {
		name   string
		sender *Sender
		url    string
		want   string // in the reason
	}{
		{"no response", impatient, secure(good), "within 100ms"},
		{"closed without a response", sender, closing.URL, "closed without"},
		{"nobody listens", sender, closed.URL, "refused"},
		{"not allowed", sender, "http://[::ffff:9.9.9.9]/", "may not reach"},
		{"expired", sender, secure(expired), "expired"},
		{"unknown issuer", sender, secure(stranger), "issuer"},
		{"another protocol instead of TLS", sender, insecure("SSH-2.0-OpenSSH_10.0\r\n"), "TLS on this port"},
		{"HTTP instead of HTTPS", sender, insecure("HTTP/1.1 400 Bad Request\r\n\r\n"), "not https"},
	} {
		r := test.sender.Attempt(t.Context(), due(test.url))
		if r.Status != nil || r.State != animalstore.DeliveryPending || !strings.Contains(string(r.Error), test.want) || strings.Contains(string(r.Error), "SSH") {
			t.Errorf("%s: got %q and %s, want a retry and %q", test.name, r.Error, r.State, test.want)
		}
	}
}
