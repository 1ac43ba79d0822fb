package api_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"animalstore"
)

// disconnector is an observer that ends a request's context, as net/http does for
// a client that closes its half of the connection, when the request has passed
// the limiter.
type disconnector struct{ disconnect context.CancelFunc }

func (d *disconnector) Limited(animalstore.Code) {
	if d.disconnect != nil {
		d.disconnect()
	}
}

func (d *disconnector) Begin()                                 {}
func (d *disconnector) End(string, string, int, time.Duration) {}
func (d *disconnector) Failed(animalstore.Code)                {}

// TestChangeAfterDisconnect: a change is made even if its client disconnects after
// something has waited for the request's context. It needs no body, whose
// reading would start a new timer.
func TestChangeAfterDisconnect(t *testing.T) {
	observer := &disconnector{}
	s := start(t, func(with *setup) { with.observer = observer })
	pet := s.addOne(t, animalstore.PetAvailable)
	_, keyID := s.makeKey(t, "a-key-that-was-made-elsewhere")
	s.db.arm("LimitState", func(ctx context.Context) error {
		ctx.Done() // as a database does that waits
		return nil
	})
	for _, test := range []struct {
		method, path string
		want         int
	}{
		{"POST", fmt.Sprintf("/v1/keys/%d/unban", keyID), http.StatusOK},
		{"DELETE", fmt.Sprintf("/v1/keys/%d", keyID), http.StatusNoContent},
		{"DELETE", petPath(pet.ID), http.StatusNoContent},
	} {
		t.Run(test.method+" "+test.path, func(t *testing.T) {
			secret := s.key(t, everything) // whose limits are not in memory yet
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			observer.disconnect = cancel
			req := httptest.NewRequestWithContext(ctx, test.method, test.path, http.NoBody)
			req.Header.Set("Authorization", "Bearer "+secret)
			w := httptest.NewRecorder()
			s.handler.ServeHTTP(w, req)
			if ctx.Err() == nil {
				t.Fatal("the client did not disconnect")
			}
			if w.Code != test.want {
				t.Errorf("got %d %s, want %d", w.Code, w.Body, test.want)
			}
		})
	}
}
