package api_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"animalstore"
	"animalstore/internal/db"
)

// TestFailuresOfADatabase: a database that can't store failures only loses them.
func TestFailuresOfADatabase(t *testing.T) {
	s := start(t)
	lost := s.handler.Stats().LostFailures
	s.db.arm("AddFailures", failWith(db.ErrFull))
	s.do(t, call{path: "/v1/pets?cursor=x"}).want(t, 400, animalstore.InvalidCursor)
	if err := s.handler.SaveFailures(t.Context()); err == nil {
		t.Error("SaveFailures: got nil, want the error of the database")
	}
	s.db.arm("AddFailures", nil)
	s.clock.Advance(time.Second)
	s.do(t, with(call{path: "/v1/pets?cursor=x"}, "X-Request-Id", "afterwards")).want(t, 400, animalstore.InvalidCursor)
	wantFailures(t, s.failures(t, "", "?code=invalid_cursor"), "afterwards 400 invalid_cursor GET /v1/pets /v1/pets")
	if n := s.handler.Stats().LostFailures - lost; n != 1 {
		t.Errorf("got %d failures lost, want 1", n)
	}
}

// TestFailuresAreSaved: a failure is on its way to the database within a second of its
// response, and no request waits while the database hangs.
func TestFailuresAreSaved(t *testing.T) {
	s := start(t).inProcess()
	s.do(t, call{path: "/v1/limits"}) // reads the key outside the bubble
	synctest.Test(t, func(t *testing.T) {
		saving, hang := make(chan time.Time), make(chan struct{})
		s.db.arm("AddFailures", func(context.Context) error {
			saving <- time.Now()
			<-hang
			return db.ErrUnavailable
		})
		fail := func(path string) time.Time {
			t.Helper()
			begun := time.Now()
			if got := s.do(t, call{path: path, bad: true}); got.status < 400 || !time.Now().Equal(begun) {
				t.Errorf("%s: got %v after %v, want an error at once", path, got, time.Since(begun))
			}
			return begun
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { s.handler.RunFailures(ctx); close(done) }()
		for _, test := range []struct {
			after        time.Duration // the last time that failures were stored
			first, while string        // requests with different codes
		}{
			{time.Millisecond, "/v1/pets?limit=0", "/v1/pets?cursor=x"},
			{500 * time.Millisecond, "/v1/nothing", "/v1/pets/x"},
			{999 * time.Millisecond, "/v1/store/orders/x", "/v1/categories/x"},
		} {
			time.Sleep(test.after)
			failed := fail(test.first)
			if took := (<-saving).Sub(failed); took > time.Second {
				t.Errorf("%s is stored %v after its response, want at most a second", test.first, took)
			}
			fail(test.while)
			hang <- struct{}{}
			<-saving
			hang <- struct{}{}
		}
		fail("/v1/photos/x")
		stop()
		<-saving // at the end, too
		hang <- struct{}{}
		<-done
		s.db.arm("Orders", func(context.Context) error {
			time.Sleep(30 * time.Millisecond)
			return errors.New("broken")
		})
		s.do(t, call{path: "/v1/store/orders"}).want(t, 500, animalstore.InternalError)
	})
	s.db.arm("AddFailures", nil)
	if got := s.failures(t, s.admin, ""); len(got) != 1 || got[0].DurationMs != 30 {
		t.Errorf("got %+v, want the last one, which took 30 ms", got)
	}
}
