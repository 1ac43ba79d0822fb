package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// load is a number of clients that add pets to a server, which may fail during that time. It
// records the server's responses.
type load struct {
	acknowledged atomic.Int64
	unanswered   atomic.Int64 // requests with an unknown outcome

	over     atomic.Bool // responses no longer count
	stopping atomic.Bool
	clients  sync.WaitGroup
	mu       sync.Mutex
	pets     []pet
	refused  map[string]int // responses with 503 by their code
}

// startLoad lets clients add pets until stop, or until the server is gone. Names are
// unique, begin with label and have about size bytes.
func startLoad(t *testing.T, s *server, key string, clients int, label string, size int) *load {
	t.Helper()
	l := &load{refused: map[string]int{}}
	statuses := []string{"available", "pending", "sold"}
	for i := range clients {
		c := newClient(t, s, key)
		l.clients.Go(func() {
			for n := 0; !l.stopping.Load() && l.unanswered.Load() == 0; n++ {
				want := pet{Name: fmt.Sprintf("%s-%d-%d-", label, i, n), CategoryID: int64(n), Status: statuses[n%3]}
				if pad := size - len(want.Name); pad > 0 {
					want.Name += strings.Repeat("🦊", pad/4)
				}
				if err := l.add(c, want); err != nil && !l.over.Load() {
					t.Errorf("%s: %v", label, err)
					return
				}
			}
		})
	}
	return l
}

// add sends one pet. It returns an error for a response that must never be sent.
func (l *load) add(c *client, want pet) error {
	a, err := c.try("POST", "/v1/pets", newPetBody(want.Name, want.CategoryID, want.Status))
	if err != nil {
		l.unanswered.Add(1)
		return nil
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

// soFar returns the pets acknowledged so far.
func (l *load) soFar() []pet {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.pets)
}

// callTime is like soFar. The load continues, but its responses no longer count.
func (l *load) callTime() []pet {
	l.over.Store(true)
	return l.soFar()
}

// stop lets the requests in progress finish and returns the acknowledged pets.
func (l *load) stop() []pet {
	l.stopping.Store(true)
	l.clients.Wait()
	return l.pets
}
