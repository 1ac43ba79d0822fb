package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// load is a number of clients that add pets to a server, which may fail meanwhile. It
// records the server's responses.
type load struct {
	acknowledged atomic.Int64
	unanswered   atomic.Int64 // requests with an unknown outcome
	slowest      atomic.Int64 // nanoseconds a response took

	over     atomic.Bool // responses no longer count
	stopping chan struct{}
	clients  sync.WaitGroup
	mu       sync.Mutex
	pets     []pet
	refused  map[string]int // responses with 503 by their code
}

// startLoad lets clients add pets until stop, or until the server is gone. Names are
// unique, begin with label and have about size bytes.
func startLoad(t *testing.T, s *server, key string, clients int, label string, size int) *load {
	t.Helper()
	l := &load{stopping: make(chan struct{}), refused: map[string]int{}}
	statuses := []string{"available", "pending", "sold"}
	for i := range clients {
		c := newClient(t, s, key)
		l.clients.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-l.stopping:
					return
				default:
				}
				want := pet{Name: fmt.Sprintf("%s-%d-%d-", label, i, n), CategoryID: int64(n), Status: statuses[n%3]}
				if pad := size - len(want.Name); pad > 0 {
					want.Name += strings.Repeat("🦊", pad/4)
				}
				if err := l.add(c, want); err != nil && !l.over.Load() {
					t.Errorf("%s: %v", label, err)
					return
				}
				if l.unanswered.Load() > 0 {
					return
				}
			}
		})
	}
	return l
}

// add sends one pet. It returns an error for a response that must never be sent.
func (l *load) add(c *client, want pet) error {
	begun := time.Now()
	a, err := c.try("POST", "/v1/pets", newPetBody(want.Name, want.CategoryID, want.Status))
	if err != nil {
		l.unanswered.Add(1)
		return nil
	}
	for took := int64(time.Since(begun)); ; {
		if old := l.slowest.Load(); took <= old || l.slowest.CompareAndSwap(old, took) {
			break
		}
	}
	switch a.status {
	case 201:
		got, err := decodePet(a.body)
		if want.ID = got.ID; err != nil || got != want {
			return fmt.Errorf("sent %+v, got 201 %s", want, a.body)
		}
		l.mu.Lock()
		l.pets = append(l.pets, got)
		l.mu.Unlock()
		l.acknowledged.Add(1)
		return nil
	case 503:
		_, rest, _ := strings.Cut(a.body, `"code":"`)
		code, _, _ := strings.Cut(rest, `"`)
		l.mu.Lock()
		l.refused[code]++
		l.mu.Unlock()
		return nil
	}
	return fmt.Errorf("sent %.40q, got %d %s, want 201 or 503", want.Name, a.status, a.body)
}

// refusals are the responses with 503 so far, by code.
func (l *load) refusals() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.refused)
}

// callTime returns the pets acknowledged so far. The load continues, but its responses
// no longer count.
func (l *load) callTime() []pet {
	l.over.Store(true)
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.pets)
}

// stop lets the requests in progress finish and returns the acknowledged pets.
func (l *load) stop() []pet {
	close(l.stopping)
	l.clients.Wait()
	return l.pets
}

// A test that bounds how long something may take adds the time that a busy machine
// needs for something simple meanwhile.

// watchAlive repeats GET /livez until the returned function is called, which returns
// how long the slowest response took.
func watchAlive(t *testing.T, s *server) (slowest func() time.Duration) {
	t.Helper()
	return watch(t, newClient(t, s, ""), 200, "GET", "/livez", "")
}

// watchWrites is like watchAlive, for a request that waits for the disk.
func watchWrites(t *testing.T, s *server, key string) (slowest func() time.Duration) {
	t.Helper()
	return watch(t, newClient(t, s, key), 201, "POST", "/v1/pets", newPetBody("watched", 1, "sold"))
}

func watch(t *testing.T, c *client, want int, method, path, body string) (slowest func() time.Duration) {
	stop, stopped := make(chan struct{}), make(chan time.Duration, 1)
	go func() {
		var longest time.Duration
		defer func() { stopped <- longest }()
		for {
			begun := time.Now()
			a, err := c.try(method, path, body)
			if t.Context().Err() != nil {
				return // the test has ended, and the server with it
			}
			if err != nil || a.status != want {
				t.Errorf("%s %s: got %d %s, %v, want %d", method, path, a.status, a.body, err, want)
				return
			}
			longest = max(longest, time.Since(begun))
			select {
			case <-stop:
				return
			case <-t.Context().Done():
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	return func() time.Duration {
		close(stop)
		return <-stopped
	}
}
