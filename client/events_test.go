package client_test

import (
	"bytes"
	"cmp"
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
			if r.URL.Path != "/v1/events" {
				service.ServeHTTP(w, r)
				return
			}
			if hurt.Add(1)%8 == 0 {
				service.ServeHTTP(&cutting{ResponseWriter: w, writes: 2}, r)
				return
			}
			name := names[rand.IntN(len(names))]
			for name == "refused for now" || strings.HasPrefix(name, "done") { // take a second, or wait for the end of a stream
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

// cutting cuts a stream after some writes, or in the sixth event of one. It doesn't let the
// client wait a second for the next one.
type cutting struct {
	http.ResponseWriter
	writes int
}

func (c *cutting) Write(b []byte) (int, error) {
	if c.writes--; c.writes < 0 {
		panic(http.ErrAbortHandler)
	}
	if events := bytes.SplitAfter(b, []byte("\n\n")); len(events) > 6 {
		c.ResponseWriter.Write(bytes.Join(events[:5], nil))
		c.ResponseWriter.Write(events[5][:len(events[5])/2])
		http.NewResponseController(c.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	return c.ResponseWriter.Write(bytes.Replace(b, []byte("retry: 1000"), []byte("retry: 0001"), 1))
}

func (c *cutting) Unwrap() http.ResponseWriter { return c.ResponseWriter }

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
		for e, err := range store.Client.Events(t.Context(), client.EventsOptions{Types: "pet.*"}) {
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
