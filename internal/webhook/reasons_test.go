package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/testenv"
)

// TestReasons: an owner who reads why an attempt got no response knows what to fix. What
// the receiver sent isn't repeated.
func TestReasons(t *testing.T) {
	t.Parallel()
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	closing := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer closing.Close()
	silent, _, _ := holdOpen(t, "")
	ssh, _, _ := holdOpen(t, "SSH-2.0-OpenSSH_10.0\r\n")
	plain, _, _ := holdOpen(t, "HTTP/1.1 400 Bad Request\r\n\r\n")
	pool := x509.NewCertPool()
	pool.AddCert(secure.Certificate())
	decadesLater := func() time.Time { return secure.Certificate().NotAfter.Add(time.Minute) }
	for _, test := range []struct {
		name   string
		config SenderConfig
		url    string
		want   string // in the reason
	}{
		{"no response", SenderConfig{Timeout: 100 * time.Millisecond}, "http://" + silent, "within 100ms"},
		{"closed without a response", SenderConfig{}, closing.URL, "closed without"},
		{"nobody listens", SenderConfig{}, testenv.RefusingAddress(t), "refused"},
		{"not allowed", SenderConfig{}, "http://[::ffff:9.9.9.9]/", "may not reach"},
		{"expired", SenderConfig{TLS: &tls.Config{RootCAs: pool, Time: decadesLater}}, secure.URL, "expired"},
		{"unknown issuer", SenderConfig{TLS: &tls.Config{RootCAs: x509.NewCertPool()}}, secure.URL, "issuer"},
		{"another protocol instead of TLS", SenderConfig{}, "https://" + ssh, "TLS on this port"},
		{"HTTP instead of HTTPS", SenderConfig{}, "https://" + plain, "not https"},
	} {
		test.config.Networks = NewNetworks(loopback)
		if test.config.Timeout == 0 {
			test.config.Timeout = time.Hour
		}
		sender := NewSender(test.config)
		defer sender.Close()
		r := sender.Attempt(t.Context(), due(test.url))
		if r.Status != nil || r.State != animalstore.DeliveryPending || !strings.Contains(string(r.Error), test.want) || strings.Contains(string(r.Error), "SSH") {
			t.Errorf("%s: got %q and %s, want a retry and %q", test.name, r.Error, r.State, test.want)
		}
	}
}
