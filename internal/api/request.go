package api

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/fair"
)

// requestTimeout is the default of [Config.RequestTimeout].
const requestTimeout = 5 * time.Second

// request is a request that is being served.
type request struct {
	*http.Request
	id      string // its X-Request-Id
	began   time.Time
	key     *animalstore.Key // nil until the credential is checked
	keyID   int64            // of a known key, valid or not; 0: none
	session *db.KeyHash      // the hash of its key, if it is from a session: see ServeAPI
	pattern string           // of the path; "" until the route is found
	param   string           // the value of the path's first {parameter}
	second  string           // the value of its second, if it has two
	body    []byte           // nil until it is read
	changes bool             // its operation was called and may have changed something
	failed  animalstore.Code // why it failed; "" if it succeeded
	waited  time.Duration    // for events or an upload; not counted as time that the server takes
	timeout time.Duration    // of the work on it: see [Config.RequestTimeout]

	ctx    context.Context
	cancel context.CancelFunc
}

// Context ends when the client disconnects, unless the request may change something, or
// when the request has taken too long.
func (r *request) Context() context.Context { return r.ctx }

// restartClock gives the request its full time from now on. Earlier contexts of the
// request end.
func (r *request) restartClock() { r.limitTime(r.timeout) }

// limitTime is restartClock with another limit.
func (r *request) limitTime(timeout time.Duration) {
	parent := r.Request.Context()
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		// A change is completed even if its client disconnects. A client may also have
		// closed only its sending half of the connection.
		parent = context.WithoutCancel(parent)
	}
	if r.key != nil {
		parent = r.withKey(parent)
	}
	if r.cancel != nil {
		r.cancel()
	}
	r.ctx, r.cancel = context.WithTimeout(parent, timeout)
}

// withKey returns a context with the request's key as the origin of changes and as the
// caller that waits for the database.
func (r *request) withKey(ctx context.Context) context.Context {
	ctx = db.WithOrigin(ctx, db.Origin{KeyID: r.key.ID, RequestID: r.id})
	return fair.WithCaller(ctx, fair.Caller{Kind: fair.Key, ID: r.key.ID})
}

// ServeHTTP serves the API, the console and the public pages.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handle(w, r, nil) }

// handle gives every request an id, a response even after an error or a panic, and a
// line in the access log.
func (s *Server) handle(rw http.ResponseWriter, hr *http.Request, session *db.KeyHash) {
	w := &response{ResponseWriter: rw}
	r := &request{Request: hr, id: requestID(hr), began: time.Now(), session: session, timeout: s.RequestTimeout}
	r.restartClock()
	defer func() { r.cancel() }()
	s.Observer.Begin()
	defer s.observe(w, r)
	defer func() {
		if v := recover(); v != nil {
			s.recovered(w, r, v)
		}
	}()
	setHeader(w, "X-Request-Id", r.id)
	setHeader(w, "X-Content-Type-Options", "nosniff") // keeps browsers from guessing another type
	if hr.TLS != nil {
		setHeader(w, "Strict-Transport-Security", "max-age=31536000")
	}
	if s.draining.Load() {
		setHeader(w, "Connection", "close")
	}
	if err := s.serve(w, r); err != nil {
		s.writeError(w, r, err)
	}
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
}

// serve checks a request in the order that the contract sets, and calls its
// handler.
func (s *Server) serve(w http.ResponseWriter, r *request) error {
	if !underV1(r.URL.Path) {
		return s.public(w, r)
	}
	if s.handlePreflight(w, r) {
		return nil
	}
	if err := s.authenticate(w, r); err != nil {
		return err
	}
	r.ctx = r.withKey(r.ctx)
	if !r.isFree() {
		if err := s.limit(w, r); err != nil {
			return err
		}
	}
	route, err := s.route(w, r)
	if route == nil || err != nil {
		return err
	}
	if !r.key.Permissions.Allows(route.permission) {
		return animalstore.Errorf(animalstore.InsufficientPermission, "this needs a key with the permission %s; yours has %s",
			animalstore.JoinOr(route.permission.Names()), r.key.Permissions)
	}
	if route.method != http.MethodGet {
		r.changes = true
		defer s.Events.Notify()
	}
	return route.handle(s, w, r)
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
		s.Log.Error("request failed after its response had begun", "request_id", r.id, "path", r.URL.Path, "err", err)
		panic(http.ErrAbortHandler) // cuts the response off, so that it isn't mistaken for a complete one
	}
	if (underV1(r.URL.Path) || r.pattern == assistantPath) && !w.has(limitHeader) {
		setLimitHeaders(w, s.anonymous.Peek(s.clientAddr(r.Request)))
	}
	s.writeError(w, r, err)
}

// recoverError, if deferred, turns a panic into an error.
func recoverError(err *error) {
	if v := recover(); v != nil {
		*err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
	}
}

// A generated id is unique in this process because of its counter, and among
// processes because of its random prefix.
var (
	idPrefix  = rand.Text()[:10] + "-"
	idCounter atomic.Uint64
)

// requestID is the id that a client or proxy gave the request, if it's safe to
// log and send back, or else a new one.
func requestID(r *http.Request) string {
	if ids := r.Header["X-Request-Id"]; len(ids) == 1 && animalstore.ValidRequestID(ids[0]) {
		return ids[0]
	}
	b := append(make([]byte, 0, 32), idPrefix...)
	return string(strconv.AppendUint(b, idCounter.Add(1), 36))
}
