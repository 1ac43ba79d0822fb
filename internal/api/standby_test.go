package api_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
)

// TestStandby: if a handler is stuck in a write, its request is answered at its deadline
// nevertheless. What the handler responds later is lost, and the request is logged once.
func TestStandby(t *testing.T) {
	if !fastPath {
		t.Skip("net/http can't answer a request before its handler returns")
	}
	t.Parallel()
	for name, test := range map[string]struct {
		giveUp error // what the database says at the deadline; nil: the write just ended
		status int
		code   animalstore.Code
	}{
		"a commit that hangs":        {fmt.Errorf("commit: %w", db.ErrOutcomeUnknown), 503, animalstore.Unavailable},
		"a write that never began":   {context.DeadlineExceeded, 503, animalstore.Overloaded},
		"a write that ends just now": {nil, 409, animalstore.PetNotAvailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, func(with *setup) { with.accessLog = true })
			release := make(chan struct{})
			s.db.arm("CreatePet", func(ctx context.Context) error {
				standby := db.StandbyOf(ctx)
				for range 2 { // the second one is late from the start
					asked := make(chan struct{})
					standby.Begin(func() error { close(asked); return test.giveUp })
					<-asked
					<-release
					standby.End()
				}
				return animalstore.Errorf(animalstore.PetNotAvailable, "the handler's own response")
			})
			if test.giveUp == nil {
				close(release)
			}
			began := time.Now()
			status, body, last := s.postInOnePacket(t, "/v1/pets", `{"name":"late","categoryId":1}`)
			if status != test.status || !strings.Contains(body, string(test.code)) {
				t.Errorf("got %d %s, want %d %s", status, body, test.status, test.code)
			}
			if took := time.Since(began); took < 4*time.Second {
				t.Errorf("answered after %v, want 5 s", took)
			}
			if answered := test.giveUp != nil; answered {
				if !last {
					t.Error("the connection stays open, although its goroutine is busy")
				}
				close(release)
			}
			eventually(t, "the request is logged", func() bool { return len(s.log.lines("msg=request ")) > 0 })
			if got := s.log.lines("msg=request "); len(got) != 1 || len(s.log.lines(fmt.Sprint(" status=", test.status, " "))) != 1 {
				t.Errorf("got %q in the log, want one request with status %d", got, test.status)
			}
			if got := s.log.lines("request refused"); len(got) > 1 {
				t.Errorf("got %q in the log, want at most one refusal", got)
			}
			s.db.arm("CreatePet", nil)
			if status, body, _ := s.postInOnePacket(t, "/v1/pets", `{"name":"next","categoryId":1}`); status != 201 {
				t.Errorf("the next write: %d %s", status, body)
			}
		})
	}
}

// postInOnePacket sends a request that package http1 serves: the client of the other tests
// sends a body by itself.
func (s *service) postInOnePacket(t *testing.T, path, body string) (status int, content string, last bool) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.owner)
	r.Header.Set("Content-Type", "application/json")
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	res, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b), res.Close
}
