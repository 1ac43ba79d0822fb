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

// Config is what a Server needs.
type Config struct {
	DB      db.DB
	Events  *events.Hub // of the events of DB
	Keys    *keys.Checker
	Limiter ratelimit.Limiter
	Usage   *ratelimit.Usage
	Log     *slog.Logger
	// TrustedProxies are the networks whose X-Forwarded-For is trusted.
	TrustedProxies []netip.Prefix
	// Now is the clock. Nil means time.Now.
	Now func() time.Time
	// CORSOrigins are the web origins whose pages may call the API. Empty
	// turns CORS off.
	CORSOrigins []string
	// AccessLog adds a log line for every request.
	AccessLog bool
	// Observer is notified of every request. It may be nil.
	Observer Observer
	// RequestTimeout limits the work on one request. 0 means 5 seconds.
	RequestTimeout time.Duration
	// CheckWebhookURL returns an error for the client if webhooks may not reach a
	// URL.
	CheckWebhookURL func(ctx context.Context, url string) error
	// SecurityContact is where to report a vulnerability: a URL, shown by
	// /.well-known/security.txt, which doesn't exist without one.
	SecurityContact string
	// Environment and Version are shown on the pages. Empty means production and
	// no version.
	Environment animalstore.Environment
	Version     string
	// PhotosLimit is how many bytes all photos together may take.
	PhotosLimit int64
	// State returns the fields of GET /v1/status that package server knows. Nil leaves
	// them empty.
	State func() ServerState
	// Console serves /console and everything below it. Nil serves nothing there.
	Console http.Handler
	// Assistant serves /mcp. Nil serves nothing there.
	Assistant Assistant
}

// Server serves the API and a few public pages.
type Server struct {
	db         db.DB
	events     *events.Hub
	followers  *followers
	keys       *keys.Checker
	limiter    ratelimit.Limiter
	usage      *ratelimit.Usage
	anonymous  *ratelimit.Addresses // limits requests without a valid key
	proxies    []netip.Prefix
	log        *slog.Logger
	now        func() time.Time
	cors       map[string]bool
	accessLog  bool
	observer   Observer
	router     *router
	cache      *cache
	uploads    *uploads
	retries    unfinishedRetries
	pages      *pages.Pages
	draining   atomic.Bool
	drainBegun chan struct{} // closed when draining begins

	version  string
	started  time.Time
	state    func() ServerState
	lastHour requestLog
	failures *failureLog
	fullLog  fullLog
	console  http.Handler

	assistant Assistant

	securityContact string

	inventories     *inventories
	photosLimit     int64
	requestTimeout  time.Duration
	checkWebhookURL func(ctx context.Context, url string) error
}

// New creates a Server.
func New(c Config) *Server {
	if c.Now == nil {
		c.Now = time.Now
	}
	s := &Server{
		db:         c.DB,
		events:     c.Events,
		followers:  newFollowers(c.Keys),
		keys:       c.Keys,
		limiter:    c.Limiter,
		usage:      c.Usage,
		anonymous:  ratelimit.NewAddresses(c.Now),
		proxies:    c.TrustedProxies,
		log:        c.Log,
		now:        c.Now,
		cors:       map[string]bool{},
		accessLog:  c.AccessLog,
		observer:   c.Observer,
		router:     newRouter(routes),
		cache:      newCache(),
		uploads:    newUploads(),
		retries:    unfinishedRetries{of: map[int64]unfinishedRetry{}},
		drainBegun: make(chan struct{}),

		failures:        newFailureLog(c.DB),
		inventories:     newInventories(c.DB, c.Now),
		photosLimit:     c.PhotosLimit,
		requestTimeout:  cmp.Or(c.RequestTimeout, requestTimeout),
		checkWebhookURL: c.CheckWebhookURL,
		pages: pages.New(pages.Config{
			Environment: cmp.Or(c.Environment, animalstore.Production),
			Version:     c.Version,
			OpenAPI:     openapi.JSON,
			OpenAPIYAML: openapi.YAML,
			Guides:      docs.Files,
			Console:     c.Console != nil,
		}),
	}
	if s.observer == nil {
		s.observer = noopObserver{}
	}
	s.version, s.started, s.state, s.console = c.Version, c.Now(), c.State, c.Console
	s.assistant = c.Assistant
	if s.state == nil {
		s.state = func() ServerState { return ServerState{} }
	}
	s.securityContact = c.SecurityContact
	for _, origin := range c.CORSOrigins {
		s.cors[origin] = true
	}
	return s
}

// Drain is the first step of a graceful shutdown: from now on responses ask
// clients to close the connection, and /readyz tells load balancers to use
// another instance. Streams end, and requests that wait for events are answered.
func (s *Server) Drain() {
	if !s.draining.Swap(true) {
		close(s.drainBegun)
	}
}
