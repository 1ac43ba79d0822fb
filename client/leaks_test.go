package client_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"animalstore"
	"animalstore/client"
	"animalstore/internal/testenv"
)

// TestNothingLeaks: calls whose contexts end, at any point, leave neither
// goroutines nor connections behind.
func TestNothingLeaks(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		h := w.Header()
		h.Set("Content-Type", "application/json")
		switch agent, _, _ := strings.Cut(r.UserAgent(), "/"); agent {
		case "silent": // no response
			wait(r.Context(), release)
		case "slow": // half of one
			io.WriteString(w, "[")
			http.NewResponseController(w).Flush()
			wait(r.Context(), release)
		case "limited":
			h.Set("Retry-After", "600")
			w.WriteHeader(http.StatusTooManyRequests)
			io.WriteString(w, `{"code":"rate_limit_exceeded","message":"wait","status":429}`)
		case "busy":
			h.Set("Retry-After", "600")
			w.WriteHeader(http.StatusServiceUnavailable)
			io.WriteString(w, `{"code":"unavailable","message":"wait","status":503}`)
		case "paced":
			h.Set("X-RateLimit-Limit", "1000")
			h.Set("X-RateLimit-Remaining", "1")
			h.Set("X-RateLimit-Reset", "9999999999")
			io.WriteString(w, "["+petJSON+"]")
		default:
			io.WriteString(w, "["+petJSON+"]")
		}
	}))
	var open atomic.Int64 // connections
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			open.Add(1)
		case http.StateClosed, http.StateHijacked:
			open.Add(-1)
		}
	}
	server.Start()
	defer server.Close()
	defer close(release)
	before := runtime.NumGoroutine()

	var clients []*client.Client
	for _, kind := range []string{"silent", "slow", "limited", "busy", "paced", "fine"} {
		options := []client.Option{client.WithUserAgent(kind + "/1")}
		if kind == "paced" {
			options = append(options, client.WithPacing())
		}
		c, err := client.New(server.URL, secret, options...)
		if err != nil {
			t.Fatal(err)
		}
		clients = append(clients, c)
	}
	var wg sync.WaitGroup
	for range 10 {
		for _, c := range clients {
			ctx, cancel := context.WithCancel(t.Context())
			wg.Go(func() {
				for _, err := range c.ListPets(ctx, animalstore.PetQuery{}) {
					if err != nil && !errors.Is(err, context.Canceled) {
						t.Errorf("%v: got %v, want context.Canceled", c, err)
					}
					break // another way to end
				}
			})
			wg.Go(func() {
				if _, err := c.CreatePet(ctx, animalstore.NewPet{Name: "Rex"}); err == nil {
					t.Errorf("%v: got success, want an error", c)
				}
			})
			// The calls are somewhere on their way; where exactly doesn't matter.
			time.AfterFunc(50*time.Millisecond, cancel)
		}
	}
	wg.Wait()
	for _, c := range clients {
		c.CloseIdleConnections()
	}
	testenv.Eventually(t, "no connection is open", func() bool { return open.Load() == 0 })
	testenv.Eventually(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before })
}

func wait(ctx context.Context, release <-chan struct{}) {
	select {
	case <-ctx.Done():
	case <-release:
	}
}
