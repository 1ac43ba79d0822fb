package api_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"animalstore"
	"animalstore/internal/api"
	"animalstore/internal/db"
	"animalstore/internal/fair"
)

func failWith(err error) fault { return func(context.Context) error { return err } }

// internalFaults are what can break inside, and the responses to it.
var internalFaults = []struct {
	name  string
	fault fault
	want  int
	code  animalstore.Code
}{
	{"an unforeseen error", failWith(errors.New(secretDetail)), 500, "internal_error"},
	{"storage gone", failWith(fmt.Errorf("%w: %s", db.ErrUnavailable, secretDetail)), 503, "unavailable"},
	{"a panic", func(context.Context) error { panic(secretDetail) }, 500, "internal_error"},
	{"storage whose response was lost", failWith(fmt.Errorf("commit: %w: %w: %s", db.ErrOutcomeUnknown, context.DeadlineExceeded, secretDetail)), 503, "unavailable"},
	{"storage full", failWith(fmt.Errorf("%w: %s", db.ErrFull, secretDetail)), 503, "storage_full"},
	{"a deadline inside", failWith(fmt.Errorf("%s: %w", secretDetail, context.DeadlineExceeded)), 503, "overloaded"},
}

const secretDetail = "secret detail: sqlite at /tmp/store.db, line 7 of writer.go"

// TestFailures: when something breaks inside, each operation responds with a documented
// error that says nothing of it, the log has it, and the next request is served.
func TestFailures(t *testing.T) {
	t.Parallel()
	s := start(t)
	for i, op := range operations {
		faults := internalFaults[:2]
		if op.id == "getPet" || op.id == "createPet" {
			faults = internalFaults
		}
		for j, f := range faults {
			t.Run(op.id+"/"+f.name, func(t *testing.T) {
				s.clock.Advance(time.Minute) // a full disk is logged once a minute
				id := fmt.Sprintf("failure-%d-%d", i, j)
				c := with(op.call(t, s), "X-Request-Id", id)
				c.key = s.key(t, everything)
				s.db.arm(op.method, func(ctx context.Context) error {
					if fair.CallerOf(ctx).Kind == fair.System && op.id == "listEvents" {
						return nil // events are read in the background too
					}
					return f.fault(ctx)
				})
				s.do(t, c).want(t, f.want, f.code)
				if lines := s.log.lines(id, "secret detail"); len(lines) == 0 {
					t.Error("got no line with the error and the request's id in the log, want one")
				}
				s.db.arm(op.method, nil)
				if got := s.do(t, c); got.status != op.ok {
					t.Errorf("afterwards: got %v, want %d", got, op.ok)
				}
			})
		}
	}
}

// TestFullDisk: a full disk is logged once a minute, and not with every write that it fails.
func TestFullDisk(t *testing.T) {
	s := start(t)
	s.db.arm("CreatePet", failWith(db.ErrFull))
	for minute := 1; minute <= 2; minute++ {
		for range 3 {
			s.do(t, post("/v1/pets", rex)).want(t, http.StatusServiceUnavailable, animalstore.StorageFull)
			s.clock.Advance(19 * time.Second)
		}
		if lines := s.log.lines("storage_full"); len(lines) != minute {
			t.Errorf("got %d lines in the log after %d minutes, want one a minute:\n%s", len(lines), minute, lines)
		}
		s.clock.Advance(3 * time.Second)
	}
}

// TestKeyFailures: the same while the key is looked up, on paths that exist and
// that do not.
func TestKeyFailures(t *testing.T) {
	for _, f := range internalFaults[:3] {
		t.Run(f.name, func(t *testing.T) {
			s := start(t)
			s.db.arm("KeyByHash", f.fault)
			for _, c := range []call{{path: "/v1/nothing"}, {path: "/v1/pets"}, {method: "HEAD", path: "/v1/pets"}, {method: "OPTIONS", path: "/v1/pets"}, {method: "POST", path: "/mcp"}} {
				got := s.do(t, c)
				got.want(t, f.want, f.code)
				if got.header.Get("X-RateLimit-Limit") != "3000" {
					t.Errorf("%s %s: got %v, want the limit of the address", c.method, c.path, got)
				}
			}
			for _, key := range []string{noKey, "ast_live_mistyped"} { // which needs no look-up
				if got := s.do(t, call{path: "/v1/pets", key: key}); got.status != http.StatusUnauthorized {
					t.Errorf("with key %s: got %v, want 401", key, got)
				}
			}
			s.db.arm("KeyByHash", nil)
			s.do(t, call{path: "/v1/pets"}).want(t, http.StatusOK, "")
		})
	}
}

// TestDeadline: what doesn't finish is given up after the handler's time, not later.
func TestDeadline(t *testing.T) {
	stuck := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for _, test := range []struct {
		method string // of the database
		call   call
	}{
		{"Pets", call{path: "/v1/pets"}},
		{"CreatePet", post("/v1/pets", rex)},
		{"CountPets", call{path: "/v1/store/inventory"}},
		{"KeyByHash", call{path: "/v1/pets"}},
		{"Ping", call{path: "/readyz", key: noKey}},
	} {
		t.Run(test.method, func(t *testing.T) {
			s := start(t, func(with *setup) { with.requestTimeout = api.RequestTimeout }).inProcess()
			s.db.arm(test.method, stuck)
			s.db.arm("SaveUsage", stuck) // which the real database would do outside the bubble
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				s.do(t, test.call).want(t, http.StatusServiceUnavailable, animalstore.Overloaded)
				if took := time.Since(start); took == 0 || took > api.RequestTimeout {
					t.Errorf("got a response after %v, want at most %v", took, api.RequestTimeout)
				}
				time.Sleep(api.RequestTimeout) // a count of pets goes on for others, but not forever
			})
		})
	}
}

// TestReadiness: readiness follows storage, liveness does not.
func TestReadiness(t *testing.T) {
	s := start(t)
	for _, f := range []struct {
		fault fault
		want  int
		code  animalstore.Code
	}{
		{nil, 200, ""},
		{failWith(db.ErrUnavailable), 503, "unavailable"},
		{failWith(errors.New("secret detail")), 503, "unavailable"},
		{func(context.Context) error { panic("secret detail") }, 503, "unavailable"},
		{nil, 200, ""},
	} {
		s.db.arm("Ping", f.fault)
		s.do(t, call{path: "/readyz", key: noKey}).want(t, f.want, f.code)
		s.do(t, call{path: "/livez", key: noKey}).want(t, http.StatusOK, "")
	}
}

// TestPanicHalfWay: if a handler panics after its response has begun, the response is cut
// off, because what was sent can't be taken back.
func TestPanicHalfWay(t *testing.T) {
	s := start(t)
	defer func() {
		if v := recover(); v != http.ErrAbortHandler {
			t.Errorf("got %v, want the connection aborted", v)
		}
	}()
	r := s.request("GET", "/v1/pets", "", nil)
	s.handler.ServeHTTP(brokenWriter{http.Header{}}, r)
	t.Error("got a response, want the connection aborted")
}

// brokenWriter panics once the header is out.
type brokenWriter struct{ header http.Header }

func (w brokenWriter) Header() http.Header       { return w.header }
func (w brokenWriter) WriteHeader(int)           {}
func (w brokenWriter) Write([]byte) (int, error) { panic("broken") }
