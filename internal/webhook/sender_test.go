package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"animalstore"
	"animalstore/client/webhook"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// receive starts a receiver over TLS, and returns it with a sender that trusts it.
func receive(t *testing.T, timeout time.Duration, handle http.HandlerFunc) (*httptest.Server, *Sender) {
	t.Helper()
	server := httptest.NewTLSServer(handle)
	t.Cleanup(server.Close)
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	sender := NewSender(SenderConfig{Networks: NewNetworks(loopback), TLS: &tls.Config{RootCAs: pool}, UserAgent: "animalstore/test", Timeout: timeout})
	t.Cleanup(sender.Close)
	return server, sender
}

// TestWhatIsSent: published libraries and ours verify it, with each of two secrets.
func TestWhatIsSent(t *testing.T) {
	t.Parallel()
	const old = "whsec_AAAAr8GKYqrTwjUPD8ILPZIo2LaLaSwAAAA="
	d := due("")
	d.Secrets = append(d.Secrets, old)
	server, sender := receive(t, 0, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		for _, secret := range d.Secrets {
			library, err := standardwebhooks.NewWebhook(secret)
			if err != nil {
				t.Error(err)
			}
			if err := library.Verify(body, r.Header); err != nil {
				t.Errorf("the published library: %v", err)
			}
			if err := webhook.Verify(secret, r.Header, body); err != nil {
				t.Errorf("our client: %v", err)
			}
		}
		if err := webhook.Verify("whsec_c29tZXRoaW5nIGVsc2U=", r.Header, body); err == nil {
			t.Error("it verifies with another secret")
		}
		got := []string{r.Method, r.URL.RequestURI(), r.Header.Get("webhook-id"), r.Header.Get("Content-Type"), r.Header.Get("User-Agent"), string(body)}
		want := []string{"POST", "/hook?a=b", "evt_1", "application/json", "animalstore/test", `{"type":"pet.created","timestamp":"1970-01-01T00:00:00.001Z","data":{}}`}
		if strings.Join(got, "|") != strings.Join(want, "|") {
			t.Errorf("got  %q\nwant %q", got, want)
		}
		w.WriteHeader(http.StatusNoContent)
	})
	d.URL = server.URL + "/hook?a=b"
	r := sender.Attempt(t.Context(), d)
	if r.State != animalstore.DeliveryDelivered || r.Status == nil || *r.Status != 204 || r.Error != "" {
		t.Errorf("got %+v, want it delivered", r.Attempt)
	}
	d.Secrets = []string{"whsec_!canary"}
	if r := sender.Attempt(t.Context(), d); r.Status != nil || strings.Contains(string(r.Error), "canary") {
		t.Errorf("an invalid secret: got %+v", r.Attempt)
	}
}

// TestResponses: what each response means.
func TestResponses(t *testing.T) {
	t.Parallel()
	port, connections := listen(t)
	server, sender := receive(t, time.Hour, func(w http.ResponseWriter, r *http.Request) {
		if location := r.URL.Query().Get("location"); location != "" {
			w.Header().Set("Location", location)
		}
		if after := r.URL.Query().Get("after"); after != "" {
			w.Header().Set("Retry-After", after)
		}
		status := 0
		for _, digit := range r.URL.Path[1:] {
			status = 10*status + int(digit-'0')
		}
		w.WriteHeader(status)
	})
	now := time.Now() // it stands still, so that an attempt takes no time
	sender.now = func() time.Time { return now }
	inAnHour := now.Add(time.Hour).UTC().Format(http.TimeFormat)
	for _, test := range []struct {
		path  string
		state animalstore.DeliveryState
		least time.Duration // until the next attempt
		most  time.Duration
	}{
		{"200", animalstore.DeliveryDelivered, 0, 0},
		{"299", animalstore.DeliveryDelivered, 0, 0},
		{"301?location=" + server.URL + "/200", animalstore.DeliveryPending, 4 * time.Second, 6 * time.Second},
		{"308?location=http://localhost:" + port + "/", animalstore.DeliveryPending, 4 * time.Second, 6 * time.Second},
		{"400", animalstore.DeliveryPending, 4 * time.Second, 6 * time.Second},
		{"410", animalstore.DeliveryFailed, 0, 0},
		{"500?after=600", animalstore.DeliveryPending, 4 * time.Second, 6 * time.Second},
		{"429?after=600", animalstore.DeliveryPending, 599 * time.Second, 601 * time.Second},
		{"503?after=600", animalstore.DeliveryPending, 599 * time.Second, 601 * time.Second},
		{"503?after=" + strings.Repeat("9", 40), animalstore.DeliveryPending, 24*time.Hour - time.Second, 24*time.Hour + time.Second},
		{"503?after=" + strings.ReplaceAll(inAnHour, " ", "+"), animalstore.DeliveryPending, 59 * time.Minute, 61 * time.Minute},
		{"503?after=soon", animalstore.DeliveryPending, 4 * time.Second, 6 * time.Second},
	} {
		r := sender.Attempt(t.Context(), due(server.URL+"/"+test.path))
		wait := time.Duration(0)
		if !r.Next.IsZero() {
			wait = r.Next.Sub(now)
		}
		if r.State != test.state || wait < test.least-time.Second || wait > test.most || r.Status == nil || r.Error != "" {
			t.Errorf("%s: got %s, next in %s, %q, want %s, in %s to %s", test.path, r.State, wait, r.Error, test.state, test.least, test.most)
		}
	}
	if n := connections.Load(); n != 0 {
		t.Errorf("a redirect was followed: %d connections", n)
	}
}

// TestHugeResponses: a receiver can't fill our memory.
func TestHugeResponses(t *testing.T) {
	block := make([]byte, 64<<10)
	sent := make(chan int64, 1)
	server, sender := receive(t, time.Hour, func(w http.ResponseWriter, r *http.Request) {
		c, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		var total int64
		write := func(b []byte) bool {
			n, err := rw.Write(b)
			total += int64(n)
			return err == nil && rw.Flush() == nil
		}
		switch r.URL.Path {
		case "/body":
			write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n"))
			for total < 1<<30 && write(block) {
			}
		case "/header":
			write([]byte("HTTP/1.1 200 OK\r\n"))
			for total < 1<<30 && write([]byte("X-Filler: "+strings.Repeat("a", 4096)+"\r\n")) {
			}
		case "/early":
			for total < 1<<30 && write([]byte("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")) {
			}
		}
		sent <- total
	})
	for _, test := range []struct {
		path  string
		state animalstore.DeliveryState
	}{
		{"/body", animalstore.DeliveryDelivered}, {"/header", animalstore.DeliveryPending}, {"/early", animalstore.DeliveryPending},
	} {
		r := sender.Attempt(t.Context(), due(server.URL+test.path))
		if r.State != test.state {
			t.Errorf("%s: got %s (%s), want %s", test.path, r.State, r.Error, test.state)
		}
		total := <-sent
		// The sockets and both ends of TLS hold a few megabytes.
		if total > 32<<20 {
			t.Errorf("%s: %d bytes were taken, want a few", test.path, total)
		}
	}
}
