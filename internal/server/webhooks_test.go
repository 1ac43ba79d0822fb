package server

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/testenv"
)

// movedClock is a clock that tests can move forward.
type movedClock struct{ offset atomic.Int64 }

func (c *movedClock) now() time.Time         { return time.Now().Add(time.Duration(c.offset.Load())) }
func (c *movedClock) move(d time.Duration)   { c.offset.Add(int64(d)) }
func (c *movedClock) time() animalstore.Time { return animalstore.At(c.now()) }

// hookReceiver is a receiver over TLS.
type hookReceiver struct {
	*httptest.Server

	mu       sync.Mutex
	accepted map[string]bool   // by webhook-id
	bodies   map[string]string // of all attempts
	attempts int
}

// newHookReceiver starts a receiver that responds with a status.
func newHookReceiver(t *testing.T, status func() int) *hookReceiver {
	t.Helper()
	h := &hookReceiver{accepted: map[string]bool{}, bodies: map[string]string{}}
	h.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // cut off
		}
		id := r.Header.Get("webhook-id")
		h.mu.Lock()
		if before, again := h.bodies[id]; again && before != string(body) {
			t.Errorf("%s: got %s, and before %s", id, body, before)
		}
		h.bodies[id] = string(body)
		h.attempts++
		h.mu.Unlock()
		code := status()
		if code == 503 {
			w.Header().Set("Retry-After", "3600") // no second attempt
		}
		w.WriteHeader(code)
		if code == 200 {
			h.mu.Lock()
			h.accepted[id] = true
			h.mu.Unlock()
		}
	}))
	t.Cleanup(h.Close)
	return h
}

func (h *hookReceiver) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.accepted)
}

// deliveringConfig is for a server that delivers to receivers on this machine.
func deliveringConfig(t *testing.T, clock *movedClock, receivers ...*hookReceiver) Config {
	t.Helper()
	pool := x509.NewCertPool()
	for _, r := range receivers {
		pool.AddCert(r.Certificate())
	}
	cfg := localConfig(t)
	cfg.WebhookNetworks = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	cfg.Hooks.Now, cfg.Hooks.WebhookTLS, cfg.Hooks.WebhookTimeout = clock.now, &tls.Config{RootCAs: pool}, time.Hour
	return cfg
}

// hookTo adds a webhook for each receiver.
func hookTo(t *testing.T, d db.DB, clock *movedClock, receivers ...*hookReceiver) {
	t.Helper()
	for _, r := range receivers {
		if _, err := d.CreateWebhook(t.Context(), animalstore.NewWebhook{URL: r.URL, Types: "pet.*"}, "whsec_b25l", clock.time()); err != nil {
			t.Fatal(err)
		}
	}
}

func addPets(t *testing.T, d db.DB, n int) {
	t.Helper()
	for i := range n {
		if _, _, err := d.CreatePet(t.Context(), animalstore.NewPet{Name: fmt.Sprint("Pet ", i), CategoryID: 1}, nil); err != nil {
			t.Fatal(err)
		}
	}
}

// TestEveryEventArrives: regardless of what fails or stops, every event is delivered, with the
// same id and body in every attempt. Claims of instances that died are taken over.
func TestEveryEventArrives(t *testing.T) {
	t.Parallel()
	events, restarts := testenv.Count(40, 10_000), testenv.Count(2, 20)
	clock := new(movedClock)
	r := newHookReceiver(t, func() int {
		if rand.N(5) == 0 {
			return 500
		}
		return 200
	})
	cfg := deliveringConfig(t, clock, r)
	for i := range restarts {
		s := run(t, cfg)
		if i == 0 {
			hookTo(t, s.DB(), clock, r)
		}
		addPets(t, s.DB(), events/restarts)
		testenv.Eventually(t, "some events arrive", func() bool { return r.count() > i*events/restarts/2 })
		// An instance claims some deliveries and dies.
		if _, err := s.DB().ClaimDeliveries(t.Context(), clock.time(), animalstore.At(clock.now().Add(time.Minute))); err != nil {
			t.Fatal(err)
		}
		s.stop()
		if err := s.wait(t); err != nil {
			t.Error(err)
		}
		clock.move(6 * time.Minute)
	}
	s := run(t, cfg)
	want := events / restarts * restarts
	testenv.Eventually(t, "all events arrive", func() bool {
		work, err := s.DB().WebhookWork(t.Context(), clock.time())
		if err != nil {
			t.Fatal(err)
		}
		if !work.Events && !work.Due && !work.Next.IsZero() { // only later
			clock.move(work.Next.Sub(clock.now()))
		}
		return r.count() == want
	})
	if stats, err := s.DB().WebhookStats(t.Context(), clock.time()); err != nil || stats.Active != 1 {
		t.Errorf("got %+v, %v, want the webhook active", stats, err)
	}
}

// TestIsolation: webhooks that hang or fail don't delay others.
func TestIsolation(t *testing.T) {
	t.Parallel()
	clock, release := new(movedClock), make(chan struct{})
	hangs := newHookReceiver(t, func() int { <-release; return 500 })
	defer close(release)
	fails := newHookReceiver(t, func() int { return 500 })
	works := newHookReceiver(t, func() int { return 200 })
	s := run(t, deliveringConfig(t, clock, hangs, fails, works))
	hookTo(t, s.DB(), clock, hangs, fails, works)
	addPets(t, s.DB(), 50)
	// During this time the attempts to the first one don't end.
	testenv.Eventually(t, "the working webhook gets all events", func() bool { return works.count() == 50 })
	hangs.mu.Lock()
	defer hangs.mu.Unlock()
	if hangs.attempts > db.MaxInFlight {
		t.Errorf("%d attempts at once to one webhook, want at most %d", hangs.attempts, db.MaxInFlight)
	}
}
