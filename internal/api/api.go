// Package api serves the store over HTTP.
//
// routes.go lists all operations. Every request goes through ServeHTTP in request.go.
// Handlers return errors, and errors.go turns those into responses.
package api

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"animalstore"
	"animalstore/docs"
	"animalstore/internal/db"
	"animalstore/internal/events"
	"animalstore/internal/keys"
	"animalstore/internal/pages"
	"animalstore/internal/ratelimit"
	"animalstore/openapi"
)

// Settings are what an operator chooses about a server and the API follows. Package server
// passes them on as they are.
type Settings struct {
	Environment     animalstore.Environment // decides which keys are accepted
	Version         string                  // shown on the pages, in the status and in the metrics
	Log             *slog.Logger
	TrustedProxies  []netip.Prefix // proxies whose X-Forwarded-For is trusted
	CORSOrigins     []string       // origins whose pages may call the API
	AccessLog       bool           // logs a line for every request
	SecurityContact string         // URL to report vulnerabilities to, for /.well-known/security.txt; "" for none
	PhotosLimit     int64          // how many bytes all photos together may take
}

// Config is what a Server needs.
type Config struct {
	Settings
	Now      func() time.Time
	DB       db.DB
	Events   *events.Hub // of the events of DB
	Keys     *keys.Checker
	Limiter  ratelimit.Limiter
	Usage    *ratelimit.Usage
	Observer Observer
	// RequestTimeout limits the work on one request. 0 means 5 seconds.
	RequestTimeout time.Duration
	// CheckWebhookURL returns an error for the client if webhooks may not reach a
	// URL.
	CheckWebhookURL func(ctx context.Context, url string) error
	// State sets the fields of GET /v1/status that package server knows.
	State func(*animalstore.Status)
	// NewConsole returns what serves /console and everything below it, as a client of the
	// API. Nil serves nothing there.
	NewConsole func(*Server) http.Handler
	// Assistant serves /mcp. Nil serves nothing there.
	Assistant Assistant
}

// Server serves the API and a few public pages.
type Server struct {
	Config
	started     time.Time
	followers   *followers
	anonymous   *ratelimit.Addresses // limits requests without a valid key
	router      *router
	cache       *cache
	uploads     *uploads
	inventories *inventories
	retries     unfinishedRetries
	pages       *pages.Pages
	console     http.Handler
	leaving     atomic.Bool // /readyz says so
	draining    atomic.Bool
	drainBegun  chan struct{} // closed when draining begins
	lastHour    requestLog
	failures    *failureLog
	fullLog     fullLog
}

// New creates a Server.
func New(c Config) *Server {
	c.RequestTimeout = cmp.Or(c.RequestTimeout, requestTimeout)
	s := &Server{
		Config:      c,
		started:     c.Now(),
		followers:   newFollowers(c.Keys),
		anonymous:   ratelimit.NewAddresses(c.Now),
		router:      newRouter(routes),
		cache:       newCache(),
		uploads:     newUploads(),
		inventories: newInventories(c.DB, c.Now),
		retries:     unfinishedRetries{of: map[int64]unfinishedRetry{}},
		pages: pages.New(pages.Config{
			Environment: c.Environment,
			Version:     c.Version,
			OpenAPI:     openapi.JSON,
			OpenAPIYAML: openapi.YAML,
			Guides:      docs.Files,
			Console:     c.NewConsole != nil,
		}),
		drainBegun: make(chan struct{}),
		failures:   newFailureLog(c.DB),
	}
	if c.NewConsole != nil {
		s.console = c.NewConsole(s)
	}
	return s
}

// Leave makes /readyz tell load balancers to use another instance. Everything else is
// still served as before.
func (s *Server) Leave() { s.leaving.Store(true) }

// Drain is the first step of a graceful shutdown: from now on responses ask
// clients to close the connection, and /readyz tells load balancers to use
// another instance. Streams end, and requests that wait for events get a response.
func (s *Server) Drain() {
	s.Leave()
	if !s.draining.Swap(true) {
		close(s.drainBegun)
	}
}
