package client_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
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
	"animalstore/internal/testenv"
)

// follow runs change while the loop runs, and expects the events of pets with these names.
func follow(t *testing.T, c *client.Client, o client.EventsOptions, want []string, change func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Deadline)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		change()
	}()
	var got []string
	for e, err := range c.Events(ctx, o) {
		if err != nil {
			t.Errorf("got %q, then %v, want %q", got, err, want)
			break
		}
		got = append(got, nameIn(e))
		if len(got) == len(want) {
			break
		}
	}
	<-done
	if !slices.Equal(got, want) {
		t.Errorf("got events of %q, want %q", got, want)
	}
}

func nameIn(e animalstore.Event) string {
	_, rest, _ := strings.Cut(string(e.Data), `"name":"`)
	name, _, _ := strings.Cut(rest, `"`)
	return name
}

// TestEventsSurviveFaults: whatever happens to its requests, a follower gets every
// event once and in order, even if more of them fail in a row than other calls would
// attempt.
func TestEventsSurviveFaults(t *testing.T) {
	t.Parallel()
	names := slices.Sorted(maps.Keys(faults))
	var hurt atomic.Int64
	store := clienttest.New(t, clienttest.WithMiddleware(func(service http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/v1/events" || hurt.Load()%8 == 7 && hurt.Add(1) > 0 {
				service.ServeHTTP(w, r)
				return
			}
			hurt.Add(1)
			name := names[rand.IntN(len(names))]
			for name == "refused for now" { // takes a second
				name = names[rand.IntN(len(names))]
			}
			faults[name](w, r, service)
		})
	}))
	n := testenv.Count(50, 5000)
	follower := store.NewClient(store.Key, client.WithBackoff(time.Millisecond, 5*time.Millisecond), client.WithMaxAttempts(2), client.WithAttemptTimeout(time.Second))
	var want []string
	for i := range n {
		want = append(want, fmt.Sprint("pet ", i))
	}
	follow(t, follower, client.EventsOptions{Types: "pet.created"}, want, func() {
		for i := range n {
			add(t, store.Client, fmt.Sprint("pet ", i))
		}
	})
	if hurt.Load() < 20 {
		t.Errorf("only %d requests had a fault: the test proves nothing", hurt.Load())
	}
}

// TestEventsWaitWithTheServer: a follower sends only one request while nothing happens,
// even if its attempts are short, and ends with its context.
func TestEventsWaitWithTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var responses tally
		store := clienttest.New(t, clienttest.InMemory(), clienttest.WithMiddleware(responses.middleware))
		follower := store.NewClient(store.Key, client.WithAttemptTimeout(300*time.Millisecond), client.WithBackoff(time.Millisecond, time.Millisecond))
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		began := time.Now()
		var last error
		for e, err := range follower.Events(ctx, client.EventsOptions{Types: "order.*"}) {
			last = err
			if err == nil {
				t.Errorf("got %+v, want nothing", e)
			}
		}
		if !errors.Is(last, context.DeadlineExceeded) {
			t.Errorf("got %v, want the context's error", last)
		}
		if took := time.Since(began); took != 20*time.Second {
			t.Errorf("took %v, want 20s", took)
		}
		time.Sleep(time.Second) // until the service has noticed, and checks the key no more
		if n := responses.total(); n != 1 {
			t.Errorf("got %d requests, want 1", n)
		}
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
			for range c.Events(ctx, client.EventsOptions{Types: "order.*"}) {
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
