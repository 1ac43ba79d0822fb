// Package api serves the store over HTTP.
//
// routes.go lists all operations; every request goes through ServeHTTP below.
// Handlers return errors, and errors.go turns those into responses.
package api

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
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
	// CheckWebhookURL returns an error for the client if webhooks may not lead to a
	// URL.
	CheckWebhookURL func(ctx context.Context, url string) error
	// NoPageCache turns off the cache of encoded pages, for a benchmark.
	NoPageCache bool
	// Environment and Version are shown on the pages. Empty means production and
	// no version.
	Environment animalstore.Environment
	Version     string
	// State returns what GET /v1/status shows of the server around the API. Nil
	// shows nothing.
	State func() ServerState
	// Console serves /console and everything below it. Nil serves nothing there.
	Console http.Handler
}

// Server serves the API and a few public pages.
type Server struct {
	db        db.DB
	events    *events.Hub
	followers *followers
	keys      *keys.Checker
	limiter   ratelimit.Limiter
	usage     *ratelimit.Usage
	anonymous *ratelimit.Addresses // limits requests without a valid key
	proxies   []netip.Prefix
	log       *slog.Logger
	now       func() time.Time
	ownClock  bool // now isn't time.Now
	cors      map[string]bool
	accessLog bool
	observer  Observer
	router    *router
	cache     *cache
	pages     *pages.Pages
	large     *db.Turns // shares the processors between keys: see largeTurn
	draining  atomic.Bool
	drained   chan struct{} // closed when draining begins

	version  string
	started  time.Time
	state    func() ServerState
	lastHour requestLog
	console  http.Handler

	checkWebhookURL func(ctx context.Context, url string) error
}

// New creates a Server.
func New(c Config) *Server {
	ownClock := c.Now != nil
	if !ownClock {
		c.Now = time.Now
	}
	s := &Server{
		db:        c.DB,
		events:    c.Events,
		followers: newFollowers(c.Keys, c.Limiter),
		keys:      c.Keys,
		limiter:   c.Limiter,
		usage:     c.Usage,
		anonymous: ratelimit.NewAddresses(c.Now),
		proxies:   c.TrustedProxies,
		log:       c.Log,
		now:       c.Now,
		ownClock:  ownClock,
		cors:      map[string]bool{},
		accessLog: c.AccessLog,
		observer:  c.Observer,
		router:    newRouter(routes),
		cache:     newCache(c.NoPageCache),
		large:     db.NewTurns(max(1, runtime.GOMAXPROCS(0)-1), 0),
		drained:   make(chan struct{}),

		checkWebhookURL: c.CheckWebhookURL,
		pages: pages.New(pages.Config{
			Environment: cmp.Or(c.Environment, animalstore.Production),
			Version:     c.Version,
			OpenAPI:     openapi.JSON,
			Guides:      docs.Files,
			Console:     c.Console != nil,
		}),
	}
	if s.observer == nil {
		s.observer = noopObserver{}
	}
	s.version, s.started, s.state, s.console = c.Version, c.Now(), c.State, c.Console
	if s.state == nil {
		s.state = func() ServerState { return ServerState{} }
	}
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
		close(s.drained)
	}
}

// handlerTimeout bounds the work on one request.
const handlerTimeout = 5 * time.Second

// request is a request that is being served.
type request struct {
	*http.Request
	began   time.Time
	at      time.Time // the same by the clock of the Config
	ctx     requestContext
	id      string           // its X-Request-Id
	key     *animalstore.Key // nil until the credential is checked
	pattern string           // of the path; "" until the route is found
	param   string           // the value of the path's first {parameter}
	second  string           // the value of its second, if it has two
	body    []byte           // nil until it is read
	secret  *db.KeyHash      // nil unless it is from a session: see ServeAs
	waited  time.Duration    // for events, which isn't the server's time
	changes bool             // its operation was called and may have changed something
	room    [128]byte        // for the body of a small response
}

// Context ends when the client disconnects or the request has taken too long.
func (r *request) Context() context.Context { return &r.ctx }

// ServeHTTP gives every request an id, a response even after an error or a panic,
// and a line in the access log.
func (s *Server) ServeHTTP(rw http.ResponseWriter, hr *http.Request) { s.handle(rw, hr, nil) }

func (s *Server) handle(rw http.ResponseWriter, hr *http.Request, secret *db.KeyHash) {
	x := exchanges.Get().(*exchange)
	defer x.end()
	w, r := &x.w, &x.r
	w.ResponseWriter = rw
	r.Request, r.began, r.id, r.secret = hr, time.Now(), requestID(hr), secret
	r.at = s.at(r.began)
	r.ctx.Context, r.ctx.deadline = hr.Context(), r.began.Add(handlerTimeout)
	defer r.ctx.release()
	s.observer.Begin()
	defer s.observe(w, r)
	if s.accessLog {
		defer func() { s.logAccess(w, r, time.Since(r.began)) }()
	}
	defer func() {
		if v := recover(); v != nil {
			s.recovered(w, r, v)
		}
	}()
	room := fieldRooms.Get().(*fieldRoom)
	w.fields = room[:0]
	w.set("X-Request-Id", r.id)
	w.set("X-Content-Type-Options", "nosniff") // keeps browsers from guessing another type
	if s.draining.Load() {
		w.set("Connection", "close")
	}
	if err := s.serve(w, r); err != nil && w.status == 0 { // else its standby has answered
		s.writeError(w, r, err)
	}
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	w.fields = nil // they were sent
	fieldRooms.Put(room)
	x.returned = true
}

// at returns the time by the clock of the Config, just after a call of time.Now returned
// now: reading a clock takes as long as looking up a key.
func (s *Server) at(now time.Time) time.Time {
	if s.ownClock {
		return s.now()
	}
	return now
}

// serve checks a request in the order that the contract sets, and calls its
// handler.
func (s *Server) serve(w *response, r *request) error {
	if !underV1(r.URL.Path) {
		return s.public(w, r)
	}
	if s.handlePreflight(w, r) {
		return nil
	}
	if err := s.authenticate(w, r); err != nil {
		return err
	}
	r.ctx.caller, r.ctx.actor = r.key.ID, db.Actor{KeyID: r.key.ID, RequestID: r.id}
	if err := s.limit(w, r); err != nil {
		return err
	}
	route, err := s.route(w, r)
	if route == nil || err != nil {
		return err
	}
	if !r.key.Permissions.Has(route.permission) {
		return animalstore.Errorf(animalstore.InsufficientPermission, "this needs a key with the permission %s; yours has %s", route.permission, r.key.Permissions)
	}
	if route.method != http.MethodGet {
		r.ctx.detach() // a change is completed even if its client disconnects
		r.changes = true
		r.ctx.standby = s.newStandby(w, r)
		defer s.events.Notify()
	}
	return route.handle(s, w, r)
}

// Plain reports whether package http1 may serve a request for this target. That
// is the API, which unlike the pages writes each response in one piece, except for
// streams of events.
func Plain(target string) bool {
	rest, ok := strings.CutPrefix(target, eventsPath)
	isEvents := ok && (rest == "" || rest[0] == '?')
	return strings.HasPrefix(target, "/v1/") && !isEvents
}

func underV1(path string) bool {
	return path == "/v1" || strings.HasPrefix(path, "/v1/")
}

// recovered writes the response of a handler that panicked.
func (s *Server) recovered(w *response, r *request, v any) {
	if v == http.ErrAbortHandler {
		panic(v)
	}
	err := fmt.Errorf("panic: %v\n%s", v, debug.Stack())
	if w.status != 0 {
		s.log.Error("request failed after its response had begun", "request_id", r.id, "path", r.URL.Path, "err", err)
		panic(http.ErrAbortHandler) // cuts the response off, so that it isn't mistaken for a complete one
	}
	if underV1(r.URL.Path) && !w.has(limitHeader) {
		setLimitHeaders(w, s.anonymous.Peek(s.clientAddr(r.Request)))
	}
	s.writeError(w, r, err)
}

func (s *Server) logAccess(w *response, r *request, took time.Duration) {
	key, client, trace := slog.Attr{}, slog.Attr{}, slog.Attr{} // left out
	if id := traceID(r.Request); id != "" {
		trace = slog.String("trace_id", id)
	}
	if addr := s.clientAddr(r.Request); addr.IsValid() {
		client = slog.String("client", addr.String())
	}
	if r.key != nil {
		key = slog.Int64("key_id", r.key.ID)
	}
	s.log.Info("request", "request_id", r.id, client, "method", printable(r.Method), "path", r.URL.Path,
		"status", w.status, "bytes", w.bytes, "took_ms", float64(took.Microseconds())/1000, key, trace)
}

// response records what was sent.
type response struct {
	http.ResponseWriter
	status int
	bytes  int
	fields [][2]string // the header, except what is in Header
}

// fieldRoom is room for the fields of most responses. Once they are sent, another
// request can use it: allocating it would be a third of what a read allocates.
type fieldRoom [12][2]string

var fieldRooms = sync.Pool{New: func() any { return new(fieldRoom) }}

// set sets a header field. Other than Header, it needs no map, which takes as long as
// encoding a pet. A field must always be set in the same one of both ways.
func (w *response) set(name, value string) {
	for i := range w.fields {
		if w.fields[i][0] == name {
			w.fields[i][1] = value
			return
		}
	}
	w.fields = append(w.fields, [2]string{name, value})
}

// has reports whether set was called with this name.
func (w *response) has(name string) bool {
	return slices.ContainsFunc(w.fields, func(f [2]string) bool { return f[0] == name })
}

// setField is set for a writer that is a *response.
func setField(w http.ResponseWriter, name, value string) { w.(*response).set(name, value) }

func (w *response) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
		w.passFields()
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *response) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	n, err := w.ResponseWriter.Write(b)
	w.bytes += n
	return n, err
}

// passFields passes the fields on to package http1, or to net/http.
func (w *response) passFields() {
	if direct, ok := w.ResponseWriter.(interface{ SetFields([][2]string) }); ok {
		direct.SetFields(w.fields)
		return
	}
	h := w.Header()
	for _, f := range w.fields {
		h[f[0]] = []string{f[1]}
	}
}

// Unwrap lets http.ResponseController reach the connection.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }
