package webhook

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
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

// speak starts a receiver that greets each connection with a text, over TLS unless the
// configuration is nil.
func speak(t *testing.T, config *tls.Config, text string) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if config != nil {
		l = tls.NewListener(l, config)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.WriteString(c, text)
				_, _ = io.Copy(io.Discard, c)
			}()
		}
	}()
	return l.Addr().String()
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
	with := func(c tls.Certificate) *tls.Config {
		return &tls.Config{Certificates: []tls.Certificate{c}}
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
	const banner = "SSH-2.0-OpenSSH_10.0\r\n"
	for _, test := range []struct {
		name   string
		sender *Sender
		url    string
		want   string // in the reason
	}{
		{"no response", impatient, "https://" + speak(t, with(good), ""), "within 100ms"},
		{"closed without a response", sender, closing.URL, "closed without"},
		{"nobody listens", sender, closed.URL, "refused"},
		{"not allowed", sender, "http://[::ffff:9.9.9.9]/", "may not reach"},
		{"expired", sender, "https://" + speak(t, with(expired), ""), "expired"},
		{"unknown issuer", sender, "https://" + speak(t, with(stranger), ""), "issuer"},
		{"another protocol instead of TLS", sender, "https://" + speak(t, nil, banner), "TLS on this port"},
		{"HTTP instead of HTTPS", sender, "https://" + speak(t, nil, "HTTP/1.1 400 Bad Request\r\n\r\n"), "not https"},
	} {
		r := test.sender.Attempt(t.Context(), due(test.url))
		if r.Status != nil || r.State != animalstore.DeliveryPending || !strings.Contains(string(r.Error), test.want) || strings.Contains(string(r.Error), "SSH") {
			t.Errorf("%s: got %q and %s, want a retry and %q", test.name, r.Error, r.State, test.want)
		}
	}
}
