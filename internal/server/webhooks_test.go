package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"animalstore"
	"animalstore/client/webhook"
	"animalstore/internal/db"
	"animalstore/internal/testenv"
)

// movedClock is a clock that tests can move forward.
type movedClock struct{ offset atomic.Int64 }

func (c *movedClock) now() time.Time         { return time.Now().Add(time.Duration(c.offset.Load())) }
func (c *movedClock) move(d time.Duration)   { c.offset.Add(int64(d)) }
func (c *movedClock) time() animalstore.Time { return animalstore.At(c.now()) }

// hookReceiver is a receiver over TLS that verifies the deliveries it gets.
type hookReceiver struct {
	*httptest.Server
	clock  *movedClock
	handle func(w http.ResponseWriter, r *http.Request)

	mu       sync.Mutex
	secret   string
	accepted map[string]string // bodies by webhook-id
	bodies   map[string]string // of all attempts
	attempts int
}

func newHookReceiver(t *testing.T, clock *movedClock, handle func(http.ResponseWriter, *http.Request)) *hookReceiver {
	t.Helper()
	h := &hookReceiver{clock: clock, handle: handle, accepted: map[string]string{}, bodies: map[string]string{}}
	h.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // cut off
		}
		id := r.Header.Get("webhook-id")
		h.mu.Lock()
		secret, before := h.secret, h.bodies[id]
		h.bodies[id] = string(body)
		h.attempts++
		h.mu.Unlock()
		// The clock may have been moved since it was sent.
		seconds, _ := strconv.ParseInt(r.Header.Get("webhook-timestamp"), 10, 64)
		sent := time.Unix(seconds, 0)
		if err := (webhook.Verifier{Secrets: []string{secret}, Now: func() time.Time { return sent }}).Verify(r.Header, body); err != nil {
			t.Errorf("%s: %v", id, err)
		}
		if now := clock.now(); sent.After(now) {
			t.Errorf("%s: it is from %v, and now is %v", id, sent, now)
		}
		if before != "" && before != string(body) {
			t.Errorf("%s: got %s, and before %s", id, body, before)
		}
		recorder := &statusRecorder{ResponseWriter: w, status: 200}
		h.handle(recorder, r)
		if recorder.status/100 == 2 {
			h.mu.Lock()
			h.accepted[id] = string(body)
			h.mu.Unlock()
		}
	}))
	t.Cleanup(h.Close)
	return h
}

type statusRecorder struct {
	http.ResponseWriter
	status int
}

func (s *statusRecorder) WriteHeader(status int) {
	s.status = status
	s.ResponseWriter.WriteHeader(status)
}

func (h *hookReceiver) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.accepted)
}

func accept(http.ResponseWriter, *http.Request) {}

// deliveringServer starts a server that delivers to receivers on this machine, and
// returns a function that stops it.
func deliveringServer(t *testing.T, file string, clock *movedClock, receivers ...*hookReceiver) (s *Server, stop func()) {
	t.Helper()
	return runServer(t, deliveringConfig(file, clock, receivers...))
}

func deliveringConfig(file string, clock *movedClock, receivers ...*hookReceiver) Config {
	pool := x509.NewCertPool()
	for _, r := range receivers {
		pool.AddCert(r.Certificate())
	}
	return Config{
		Database: "sqlite:" + file, Listen: "127.0.0.1:0",
		WebhookNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Timeouts:        Timeouts{Drain: time.Second},
		Hooks:           Hooks{Now: clock.now, WebhookTLS: &tls.Config{RootCAs: pool}},
	}
}

func runServer(t *testing.T, cfg Config) (s *Server, stop func()) {
	t.Helper()
	s, err := New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	return s, sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func hookTo(t *testing.T, d db.DB, r *hookReceiver, clock *movedClock) animalstore.Webhook {
	t.Helper()
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	w, err := d.CreateWebhook(t.Context(), animalstore.NewWebhook{URL: r.URL + "/hook", Types: "pet.*"}, secret, clock.time())
	if err != nil {
		t.Fatal(err)
	}
	r.mu.Lock()
	r.secret = secret
	r.mu.Unlock()
	return w
}

func addPets(t *testing.T, d db.DB, n int) {
	t.Helper()
	for i := range n {
		if _, _, err := d.CreatePet(t.Context(), animalstore.NewPet{Name: fmt.Sprint("Pet ", i), CategoryID: 1}, nil); err != nil {
			t.Fatal(err)
		}
	}
}

func within2Minutes(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within two minutes: %s", what)
		}
	}
}

// TestEveryEventArrives: whatever fails or stops, every event is delivered, with the
// same id and body in every attempt. Claims of instances that died are taken over.
func TestEveryEventArrives(t *testing.T) {
	t.Parallel()
	events, restarts := testenv.Count(150, 10_000), testenv.Count(3, 20)
	clock := new(movedClock)
	r := newHookReceiver(t, clock, func(w http.ResponseWriter, _ *http.Request) {
		if rand.N(5) == 0 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	file := filepath.Join(t.TempDir(), "store.db")
	for run := range restarts {
		s, stop := deliveringServer(t, file, clock, r)
		if run == 0 {
			hookTo(t, s.DB(), r, clock)
		}
		addPets(t, s.DB(), events/restarts)
		within2Minutes(t, "some events arrive", func() bool { return r.count() > run*events/restarts/2 })
		// An instance claims some deliveries and dies.
		if _, err := s.DB().ClaimDeliveries(t.Context(), clock.time(), animalstore.At(clock.now().Add(time.Minute))); err != nil {
			t.Fatal(err)
		}
		stop()
		clock.move(6 * time.Minute)
	}
	s, stop := deliveringServer(t, file, clock, r)
	defer stop()
	want := events / restarts * restarts
	within2Minutes(t, "all events arrive", func() bool {
		clock.move(100 * time.Second) // of their time
		time.Sleep(50 * time.Millisecond)
		return r.count() == want
	})
	if stats, err := s.DB().WebhookStats(t.Context(), clock.time()); err != nil || stats.Active != 1 {
		t.Errorf("got %+v, %v, want the webhook active", stats, err)
	}
	t.Logf("%d events in %d attempts", want, r.attempts)
}

// TestIsolation: webhooks that hang or fail don't delay others.
func TestIsolation(t *testing.T) {
	t.Parallel()
	clock, release := new(movedClock), make(chan struct{})
	hangs := newHookReceiver(t, clock, func(http.ResponseWriter, *http.Request) { <-release })
	defer close(release)
	fails := newHookReceiver(t, clock, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) })
	works := newHookReceiver(t, clock, accept)
	s, stop := deliveringServer(t, filepath.Join(t.TempDir(), "store.db"), clock, hangs, fails, works)
	defer stop()
	for _, r := range []*hookReceiver{hangs, fails, works} {
		hookTo(t, s.DB(), r, clock)
	}
	began := time.Now()
	addPets(t, s.DB(), 50)
	within2Minutes(t, "the working webhook gets all events", func() bool { return works.count() == 50 })
	// This is far less than the timeout of the hanging webhook.
	if took := time.Since(began); took > db.AttemptTimeout {
		t.Errorf("took %s, want no wait for the others", took)
	}
	hangs.mu.Lock()
	defer hangs.mu.Unlock()
	if hangs.attempts > db.MaxInFlight {
		t.Errorf("%d attempts at once to one webhook, want at most %d", hangs.attempts, db.MaxInFlight)
	}
}

// TestGoneReceiver: 410 disables a webhook, with an event and a log line, and neither
// shows the secret.
func TestGoneReceiver(t *testing.T) {
	t.Parallel()
	clock := new(movedClock)
	r := newHookReceiver(t, clock, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) })
	s, stop := deliveringServer(t, filepath.Join(t.TempDir(), "store.db"), clock, r)
	defer stop()
	w := hookTo(t, s.DB(), r, clock)
	addPets(t, s.DB(), 1)
	within2Minutes(t, "the webhook is disabled", func() bool {
		got, err := s.DB().Webhook(t.Context(), w.ID)
		return err == nil && got.State == animalstore.WebhookDisabled && strings.Contains(string(got.DisabledReason), "410")
	})
	events, _, err := s.DB().Events(t.Context(), db.EventQuery{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	disabled := false
	for _, e := range events {
		disabled = disabled || e.Type == animalstore.WebhookDisabledEvent
		if strings.Contains(string(e.Data), "whsec_") {
			t.Errorf("event %d shows the secret: %s", e.ID, e.Data)
		}
	}
	if !disabled {
		t.Error("there is no webhook.disabled event")
	}
}
