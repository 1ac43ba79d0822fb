package client_test

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"animalstore"
	"animalstore/client"
	"animalstore/client/clienttest"
)

func nameIn(e animalstore.Event) string {
	_, rest, _ := strings.Cut(string(e.Data), `"name":"`)
	name, _, _ := strings.Cut(rest, `"`)
	return name
}

// TestSilentStream: if a proxy holds back a stream after its beginning, the follower
// polls, and tries a stream again ten minutes later.
func TestSilentStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var streams atomic.Int64
		store := clienttest.New(t, clienttest.InMemory(), clienttest.WithMiddleware(func(service http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Accept") != "text/event-stream" {
					service.ServeHTTP(w, r)
					return
				}
				streams.Add(1)
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprintf(w, "retry: 1000\nid: %s\n\n", cmp.Or(r.Header.Get("Last-Event-ID"), "0"))
				http.NewResponseController(w).Flush()
				<-r.Context().Done()
			})
		}))
		began := time.Now()
		go func() {
			add(t, store.Client, "Rex")
			time.Sleep(11 * time.Minute)
			add(t, store.Client, "Bo")
		}()
		var got []string
		for e, err := range store.Client.Events(t.Context(), animalstore.EventQuery{Types: "pet.*"}) {
			got = append(got, fmt.Sprint(nameIn(e), " ", time.Since(began).Round(time.Second)))
			if err != nil || len(got) == 2 {
				break
			}
		}
		if want := []string{"Rex 45s", "Bo 11m30s"}; !slices.Equal(got, want) || streams.Load() != 2 {
			t.Errorf("got %q after %d streams, want %q after 2", got, streams.Load(), want)
		}
		time.Sleep(time.Second) // until the service checks the key no more
	})
}

// TestEventsDoNotHoldUpOthers: while a follower waits, other calls of the same client
// continue, even with pacing and at the start of a new window.
func TestEventsDoNotHoldUpOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := clienttest.New(t, clienttest.InMemory())
		c := store.NewClient(store.Key, client.WithPacing())
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range c.Events(ctx, animalstore.EventQuery{Types: "order.*"}) {
			}
		}()
		synctest.Wait() // until the follower's request is the first, and waits
		began := time.Now()
		for i := range 3 {
			add(t, c, fmt.Sprint("pet ", i))
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("three calls took %v during a follower's wait, want no time", took)
		}
		cancel()
		<-done
		time.Sleep(time.Second) // until the service checks the key no more
	})
}
