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

// TestFailures: when something breaks inside, each operation responds with a documented
// error that says nothing of it, the log has it, and the next request is served.
func TestFailures(t *testing.T) {
	sqliteOnly(t, "what breaks is in front of the database")
	t.Parallel()
	const detail = "secret detail: sqlite at /tmp/store.db, line 7 of writer.go"
	faults := []struct {
		name   string
		fault  fault
		want   int
		code   animalstore.Code
		logged string
	}{
		{"an unforeseen error", failWith(errors.New(detail)), 500, "internal_error", "secret detail"},
		{"a panic", func(context.Context) error { panic(detail) }, 500, "internal_error", "secret detail"},
		{"storage gone", failWith(fmt.Errorf("%w: %s", db.ErrUnavailable, detail)), 503, "unavailable", "secret detail"},
		{"storage whose response was lost", failWith(fmt.Errorf("commit: %w: %w: %s", db.ErrOutcomeUnknown, context.DeadlineExceeded, detail)), 503, "unavailable", "secret detail"},
		{"storage full", failWith(fmt.Errorf("%w: %s", db.ErrFull, detail)), 503, "storage_full", "secret detail"},
		{"a deadline inside", failWith(fmt.Errorf("%s: %w", detail, context.DeadlineExceeded)), 503, "overloaded", "secret detail"},
	}
	s := start(t)
	for i, op := range operations {
		for j, f := range faults {
			t.Run(op.id+"/"+f.name, func(t *testing.T) {
				id := fmt.Sprintf("failure-%d-%d", i, j)
				c := op.call(t, s)
				c.key, c.header = s.key(t, everything), http.Header{"X-Request-Id": {id}, "Content-Type": c.header["Content-Type"]}
				if c.header["Content-Type"] == nil {
					delete(c.header, "Content-Type") // that of JSON
				}
				s.db.arm(op.method, func(ctx context.Context) error {
					if fair.CallerOf(ctx) == fair.System && op.id == "listEvents" {
						return nil // events are read in the background too, where a panic would end the test
					}
					return f.fault(ctx)
				})
				got := s.do(t, c)
				got.want(t, f.want, f.code)
				if lines := s.log.lines(id, f.logged); len(lines) == 0 {
					t.Errorf("got no line with %q and the request's id in the log, want one", f.logged)
				}
				s.db.arm(op.method, nil)
				if got := s.do(t, c); got.status != op.ok {
					t.Errorf("afterwards: got %v, want %d", got, op.ok)
				}
			})
		}
	}
}

// TestKeyFailures: the same while the key is looked up, on paths that exist and
// that do not.
func TestKeyFailures(t *testing.T) {
	for _, f := range []struct {
		name  string
		fault fault
		want  int
		code  animalstore.Code
	}{
		{"an unforeseen error", failWith(errors.New("secret detail")), 500, "internal_error"},
		{"a panic", func(context.Context) error { panic("secret detail") }, 500, "internal_error"},
		{"storage gone", failWith(db.ErrUnavailable), 503, "unavailable"},
		{"a deadline inside", failWith(context.DeadlineExceeded), 503, "overloaded"},
	} {
		t.Run(f.name, func(t *testing.T) {
			s := start(t)
			s.db.arm("KeyByHash", f.fault)
			for _, c := range []call{{path: "/v1/nothing"}, {path: "/v1/pets"}, {method: "HEAD", path: "/v1/pets"}, {method: "OPTIONS", path: "/v1/pets"}, {method: "DELETE", path: "/v1/store/orders"}} {
				s.do(t, c).want(t, f.want, f.code)
			}
			s.db.arm("KeyByHash", nil)
			s.do(t, call{path: "/v1/pets"}).want(t, http.StatusOK, "")
		})
	}
}

// TestDeadline: an operation is given up after the handler's time, not later.
func TestDeadline(t *testing.T) {
	sqliteOnly(t, "the connections of PostgreSQL do not fit in a bubble of synctest")
	stuck := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for _, op := range operations {
		t.Run(op.id, func(t *testing.T) {
			s := start(t).inProcess()
			c := op.call(t, s)
			c.key = s.admin
			s.db.arm(op.method, stuck)
			s.db.arm("SaveUsage", stuck) // which the real database would do outside the bubble
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				got := s.do(t, c)
				got.want(t, http.StatusServiceUnavailable, animalstore.Overloaded)
				if took := time.Since(start); took != api.HandlerTimeout {
					t.Errorf("got a response after %v, want %v", took, api.HandlerTimeout)
				}
				time.Sleep(api.HandlerTimeout) // a count of pets goes on for others, but not forever
			})
		})
	}
	t.Run("the key", func(t *testing.T) {
		s := start(t).inProcess()
		s.db.arm("KeyByHash", stuck)
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			s.do(t, call{path: "/v1/pets"}).want(t, http.StatusServiceUnavailable, animalstore.Overloaded)
			if took := time.Since(start); took > api.HandlerTimeout {
				t.Errorf("got a response after %v, want at most %v", took, api.HandlerTimeout)
			}
		})
	})
	t.Run("readiness", func(t *testing.T) {
		s := start(t).inProcess()
		s.db.arm("Ping", stuck)
		synctest.Test(t, func(t *testing.T) {
			s.do(t, call{path: "/readyz", key: noKey}).want(t, http.StatusServiceUnavailable, animalstore.Overloaded)
			s.do(t, call{path: "/livez", key: noKey}).want(t, http.StatusOK, "")
		})
	})
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
