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
	"testing"
	"time"
)

// certificate returns one that is its own issuer.
func certificate(t *testing.T, host string, from, until time.Time) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: from, NotAfter: until, IPAddresses: []net.IP{net.ParseIP(host)}, IsCA: true, BasicConstraintsValid: true}
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

// TestReasons: an owner who reads why an attempt failed knows what to fix.
func TestReasons(t *testing.T) {
	t.Parallel()
	now := time.Now()
	good := certificate(t, "127.0.0.1", now.Add(-time.Hour), now.Add(time.Hour))
	expired := certificate(t, "127.0.0.1", now.Add(-time.Hour), now.Add(-time.Minute))
	early := certificate(t, "127.0.0.1", now.Add(time.Minute), now.Add(time.Hour))
	other := certificate(t, "127.0.0.2", now.Add(-time.Hour), now.Add(time.Hour))
	stranger := certificate(t, "127.0.0.1", now.Add(-time.Hour), now.Add(time.Hour))
	pool := x509.NewCertPool()
	for _, c := range []tls.Certificate{good, expired, early, other} {
		pool.AddCert(c.Leaf)
	}
	with := func(c tls.Certificate) *tls.Config {
		return &tls.Config{Certificates: []tls.Certificate{c}}
	}
	old := with(good)
	old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	strict := with(good)
	strict.NextProtos = []string{"spdy/3"}
	sender := NewSender(SenderConfig{Networks: NewNetworks(loopback), TLS: &tls.Config{RootCAs: pool}, Timeout: 10 * time.Second})
	defer sender.Close()
	const settings = "\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x64"
	const banner = "SSH-2.0-OpenSSH_10.0\r\n"
	for _, test := range []struct{ name, url, want string }{
		{"expired", "https://" + speak(t, with(expired), ""), "the certificate has expired"},
		{"too early", "https://" + speak(t, with(early), ""), "the certificate is not valid yet"},
		{"another host", "https://" + speak(t, with(other), ""), "the certificate is for another host"},
		{"unknown issuer", "https://" + speak(t, with(stranger), ""), "the certificate's issuer is not trusted"},
		{"old TLS", "https://" + speak(t, old, ""), "there is no common TLS version: TLS 1.2 or later is required"},
		{"only HTTP/2", "https://" + speak(t, with(good), settings), "the receiver accepts only HTTP/2: HTTP/1.1 is required"},
		{"no HTTP/1.1 in ALPN", "https://" + speak(t, strict, ""), "the receiver accepts only HTTP/2: HTTP/1.1 is required"},
		{"only HTTP/2 without TLS", "http://" + speak(t, nil, settings), "the receiver accepts only HTTP/2: HTTP/1.1 is required"},
		{"another protocol", "http://" + speak(t, nil, banner), "the response is not HTTP"},
		{"another protocol over TLS", "https://" + speak(t, with(good), banner), "the response is not HTTP"},
		{"another protocol instead of TLS", "https://" + speak(t, nil, banner), "the receiver doesn't use TLS on this port"},
		{"HTTP instead of HTTPS", "https://" + speak(t, nil, "HTTP/1.1 400 Bad Request\r\n\r\n"), "the receiver speaks http on this port, not https"},
	} {
		if r := sender.Attempt(t.Context(), due(test.url)); string(r.Error) != test.want {
			t.Errorf("%s: got %q, want %q", test.name, r.Error, test.want)
		}
	}
}
