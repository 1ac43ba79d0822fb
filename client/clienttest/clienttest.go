// Package clienttest runs the real service in a test: its HTTP API on a database
// in a temporary directory, removed when the test ends.
//
//	func TestAdoption(t *testing.T) {
//		store := clienttest.New(t)
//		pet, err := store.Client.CreatePet(t.Context(), animalstore.NewPet{Name: "Rex", CategoryID: 7})
//		…
//	}
//
// Everything behaves as in production, including limits and bans, except that a
// key's last use is saved when its usage is requested instead of every second.
package clienttest

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"animalstore"
	"animalstore/client"
	"animalstore/internal/keys"
	"animalstore/internal/server"
)

// Server is the service, for one test.
type Server struct {
	// URL is its address, without /v1. With [InMemory], only clients created by this
	// package can reach it.
	URL string
	// Key is the secret of a key with all permissions. It has the enterprise plan with
	// limits that no test reaches, unless an option says otherwise.
	Key string
	// Client uses Key.
	Client *client.Client

	t         testing.TB
	server    *server.Server
	now       func() time.Time
	transport *http.Transport
}

// Option changes how a Server is set up.
type Option func(*setup)

type setup struct {
	key           animalstore.NewKey
	now           func() time.Time
	middleware    func(http.Handler) http.Handler
	inMemory      bool
	clientOptions []client.Option
}

// WithPlan sets the plan of the first key. Set limits only for the enterprise plan;
// leave them zero for any other plan.
func WithPlan(plan animalstore.Plan, limits animalstore.Limits) Option {
	return func(s *setup) { s.key.Plan, s.key.Limits = plan, limits }
}

// WithPermissions sets the permissions of the first key.
func WithPermissions(p animalstore.Permissions) Option {
	return func(s *setup) { s.key.Permissions = p }
}

// WithClock replaces the service's clock, [time.Now]. The service uses it for limits,
// bans, expiry, the times in responses and the Date header. Clients keep using their
// own clock. To control both, use [InMemory] in a testing/synctest bubble.
func WithClock(now func() time.Time) Option {
	return func(s *setup) { s.now = now }
}

// WithMiddleware wraps the service in a handler, for example to count requests or
// to make them fail.
func WithMiddleware(m func(http.Handler) http.Handler) Option {
	return func(s *setup) { s.middleware = m }
}

// WithClientOptions sets the options of Client.
func WithClientOptions(options ...client.Option) Option {
	return func(s *setup) { s.clientOptions = options }
}

// InMemory connects clients and service without a network. In a testing/synctest
// bubble, time then advances as soon as every goroutine is waiting: a test of hours of
// rate limiting finishes immediately.
func InMemory() Option {
	return func(s *setup) { s.inMemory = true }
}

// New starts a service that stops when the test ends.
func New(t testing.TB, options ...Option) *Server {
	t.Helper()
	with := setup{
		key: animalstore.NewKey{
			Plan:        animalstore.PlanEnterprise,
			Limits:      animalstore.Limits{PerMinute: 1 << 40, PerDay: 1 << 40},
			Permissions: animalstore.Read | animalstore.Write | animalstore.Admin,
		},
		now:        time.Now,
		middleware: func(h http.Handler) http.Handler { return h },
	}
	for _, option := range options {
		option(&with)
	}
	s := &Server{t: t, now: with.now}
	s.start(t, with)
	key := with.key
	s.Key = s.NewKey(key.Plan, key.Limits, key.Permissions)
	s.Client = s.NewClient(s.Key, with.clientOptions...)
	return s
}

// start runs the service until the test ends.
func (s *Server) start(t testing.TB, with setup) {
	t.Helper()
	cfg := server.Config{
		Database: "sqlite:" + filepath.Join(t.TempDir(), "store.db"),
		Listen:   "127.0.0.1:0",
		// In a bubble a client may be idle for hours.
		Timeouts: server.Timeouts{Drain: time.Second},
		Hooks: server.Hooks{
			Now: with.now,
			Middleware: func(h http.Handler) http.Handler {
				return with.middleware(dated(h, with.now))
			},
			NoBackground: true,
			// Nothing is delivered, so any URL will do.
			CheckWebhookURL: func(context.Context, string) error { return nil },
		},
	}
	cfg.Log = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	s.transport = http.DefaultTransport.(*http.Transport).Clone()
	s.transport.Proxy = nil
	s.transport.MaxIdleConnsPerHost = 64
	if with.inMemory {
		network := newPipes()
		cfg.Listener = network
		s.transport.DialContext = network.dial
	}
	var err error
	if s.server, err = server.New(context.Background(), cfg); err != nil {
		t.Fatalf("clienttest: %v", err)
	}
	s.URL = s.server.URL()
	if with.inMemory {
		s.URL = "http://animalstore.test"
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.server.Run(ctx) }()
	t.Cleanup(func() {
		s.transport.CloseIdleConnections()
		stop()
		// A request that the test left hanging is cut off.
		if err := <-done; err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("clienttest: %v", err)
		}
		if err := s.server.Close(); err != nil {
			t.Errorf("clienttest: %v", err)
		}
	})
}

// dated sends the service's time in every response.
func dated(h http.Handler, now func() time.Time) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", now().UTC().Format(http.TimeFormat))
		h.ServeHTTP(w, r)
	})
}

// NewKey creates another key and returns its secret. Set limits only for the enterprise
// plan; leave them zero for any other plan.
func (s *Server) NewKey(plan animalstore.Plan, limits animalstore.Limits, permissions animalstore.Permissions) string {
	s.t.Helper()
	key := animalstore.NewKey{Name: "clienttest", Plan: plan, Limits: limits, Permissions: permissions, Environment: animalstore.Production}
	if err := key.Validate(); err != nil {
		s.t.Fatalf("clienttest: create a key: %v", err)
	}
	secret := keys.Mint(animalstore.Production)
	if _, err := s.server.DB().CreateKey(context.Background(), key, keys.Hash(secret), animalstore.At(s.now())); err != nil {
		s.t.Fatalf("clienttest: create a key: %v", err)
	}
	return secret
}

// NewClient creates another client that uses the key with this secret.
func (s *Server) NewClient(secret string, options ...client.Option) *client.Client {
	s.t.Helper()
	options = append([]client.Option{client.WithHTTPClient(&http.Client{Transport: s.transport})}, options...)
	c, err := client.New(s.URL, secret, options...)
	if err != nil {
		s.t.Fatalf("clienttest: create a client: %v", err)
	}
	return c
}
