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
	"time"

	"animalstore"
	"animalstore/client"
	"animalstore/client/clienttest"
	"animalstore/internal/testenv"
)

// TestEventsFollow: the loop gets past and new events, in order, each once.
func TestEventsFollow(t *testing.T) {
	t.Parallel()
	store := clienttest.New(t)
	c := store.Client
	add(t, c, "before")
	follow(t, c, client.EventsOptions{Types: "pet.*"}, []string{"before", "pet 0", "pet 1", "pet 2"}, func() {
		for i := range 3 {
			add(t, c, fmt.Sprint("pet ", i))
		}
	})
	var all []animalstore.Event
	for e, err := range c.ListEvents(t.Context(), client.EventsOptions{Subject: "pet/2"}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	if len(all) != 1 || all[0].Type != animalstore.PetCreated || all[0].Subject != "pet/2" || all[0].Actor != animalstore.ActorKey || all[0].KeyID == nil {
		t.Errorf("got %+v, want the event of one pet", all)
	}
	follow(t, c, client.EventsOptions{After: all[0].ID, Types: "pet.created"}, []string{"pet 1", "pet 2"}, func() {})
	follow(t, c, client.EventsOptions{Latest: true, Types: "pet.created"}, []string{"late"}, func() { add(t, c, "late") })
}

// follow runs change once the loop has begun, and expects the events of pets with these
// names.
func follow(t *testing.T, c *client.Client, o client.EventsOptions, want []string, change func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	begun := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		<-begun
		if o.Latest { // it must know the newest id before anything happens
			time.Sleep(300 * time.Millisecond)
		}
		change()
	}()
	close(begun)
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
	n := testenv.Count(150, 5000)
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

func TestEventsExpired(t *testing.T) {
	t.Parallel()
	store := clienttest.New(t)
	for _, err := range store.Client.Events(t.Context(), client.EventsOptions{After: 1 << 40}) {
		wantCode(t, err, animalstore.EventsExpired)
		var response *client.Error
		if !errors.As(err, &response) || response.Status != http.StatusGone {
			t.Errorf("got %v, want the response", err)
		}
	}
	for _, err := range store.Client.Events(t.Context(), client.EventsOptions{Types: "dog.*"}) {
		wantCode(t, err, animalstore.InvalidParameter)
	}
	for _, err := range store.Client.Events(t.Context(), client.EventsOptions{After: 1, Latest: true}) {
		if err == nil {
			t.Error("got no error, want one: both can't be set")
		}
	}
}

// TestEventsWaitWithTheServer: a follower sends only one request while nothing happens,
// even if its attempts are short, and ends with its context.
func TestEventsWaitWithTheServer(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	store := clienttest.New(t, clienttest.WithMiddleware(func(service http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requests.Add(1)
			service.ServeHTTP(w, r)
		})
	}))
	follower := store.NewClient(store.Key, client.WithAttemptTimeout(300*time.Millisecond), client.WithBackoff(time.Millisecond, time.Millisecond))
	ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
	defer cancel()
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
	if n := requests.Load(); n != 1 {
		t.Errorf("got %d requests, want 1", n)
	}
}

// TestEventsDoNotHoldUpOthers: while a follower waits, other calls of the same client
// continue, even with pacing and at the start of a new window.
func TestEventsDoNotHoldUpOthers(t *testing.T) {
	t.Parallel()
	store := clienttest.New(t)
	c := store.NewClient(store.Key, client.WithPacing())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range c.Events(ctx, client.EventsOptions{Types: "order.*"}) {
		}
	}()
	began := time.Now()
	for i := range 3 {
		time.Sleep(50 * time.Millisecond) // the follower's request is likely the first
		add(t, c, fmt.Sprint("pet ", i))
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("three calls took %v during a follower's wait, want no time", took)
	}
	cancel()
	<-done
}
