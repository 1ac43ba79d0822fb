package e2e

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"animalstore/internal/db/postgres/pgtest"
)

// TestKeysShareFairly: a key that sends a great deal of work at once, within its plan,
// doesn't make others wait until that work is done.
func TestKeysShareFairly(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		database func(t *testing.T) string
	}{
		{"SQLite", func(t *testing.T) string { return newDatabase(t) }},
		{"PostgreSQL", func(t *testing.T) string { return pgtest.Shared(t).NewDatabase(t, "") }},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.name != "SQLite" && !soak {
				t.Skip("takes long: make soak has it")
			}
			database := test.database(t)
			s := start(t, onDatabase(database))
			fillWithLongNames(t, s, loadKey(t, database))
			read := burst{"GET", "/v1/pets?limit=100", "", 200}
			write := burst{"POST", "/v1/pets", newPetBody(longName, 1, "sold"), 201}
			for _, heavy := range []struct {
				name string
				burst
				keys int
			}{{"pages", read, 1}, {"pages of four keys", read, 4}, {"writes", write, 1}} {
				if heavy.name != "pages" && !soak {
					continue
				}
				t.Run(heavy.name, func(t *testing.T) { testFairness(t, s, heavy.burst, heavy.keys) })
			}
		})
	}
}

// longName is one of the longest names that a pet can have.
var longName = strings.Repeat("🦊", 1024)

func fillWithLongNames(t *testing.T, s *server, key string) {
	t.Helper()
	for range 100 {
		wantStatus(t, newClient(t, s, key).do(t, "POST", "/v1/pets", newPetBody(longName, 1, "sold")), 201, "")
	}
}

// burst is a request that a key sends many times.
type burst struct {
	method, path, body string
	status             int
}

// testFairness has some keys send a burst and another key a small request at a time.
func testFairness(t *testing.T, s *server, heavy burst, keys int) {
	requests, connections := 400, 100
	if soak {
		requests, connections = 990, 200
	}
	other := newClient(t, s, loadKey(t, s.database))
	small := func() time.Duration {
		begun := time.Now()
		method, path, body, status := "GET", "/v1/pets?limit=1", "", 200
		if heavy.method == "POST" {
			method, path, body, status = "POST", "/v1/pets", newPetBody("small", 1, "sold"), 201
		}
		a := other.do(t, method, path, body)
		if a.status != status {
			t.Errorf("another key got %d %s, want %d", a.status, a.body, status)
		}
		return time.Since(begun)
	}
	small()
	ended := make(chan struct{})
	begun := time.Now()
	var all sync.WaitGroup
	for range keys {
		key := loadKey(t, s.database)
		all.Go(func() { heavy.send(t, s, key, requests, connections) })
	}
	go func() {
		all.Wait()
		close(ended)
	}()
	var waits []time.Duration
	for over := false; !over; {
		waits = append(waits, small())
		select {
		case <-ended:
			over = true
		case <-time.After(5 * time.Millisecond):
		}
	}
	slices.Sort(waits)
	took, p99 := time.Since(begun), waits[len(waits)*99/100]
	t.Logf("%d keys sent %d requests in %v; meanwhile another key sent %d: median %v, p99 %v, longest %v",
		keys, requests, took, len(waits), waits[len(waits)/2], p99, waits[len(waits)-1])
	// Unless keys share fairly, each small read takes most of the time of the burst.
	// Writes share commits, so there a burst is over too soon.
	if heavy.method == "GET" && len(waits) < 20 {
		t.Errorf("another key got %d responses within %v, want at least 20", len(waits), took)
	}
	if soak && p99 > 150*time.Millisecond {
		t.Errorf("p99 is %v, want at most 150ms", p99)
	}
}

// send sends the requests, over that many connections at once.
func (b burst) send(t *testing.T, s *server, key string, requests, connections int) {
	var each sync.WaitGroup
	queue := make(chan struct{}, requests)
	for range requests {
		queue <- struct{}{}
	}
	close(queue)
	text := message(b.method, b.path, key, b.body)
	for range connections {
		each.Go(func() {
			c, err := tryDial(s)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			for range queue {
				if _, err := io.WriteString(c, text); err != nil {
					t.Error(err)
					return
				}
				resp, err := http.ReadResponse(c.r, nil)
				if err == nil {
					_, err = io.Copy(io.Discard, resp.Body)
				}
				if err == nil && resp.StatusCode != b.status && resp.StatusCode != 503 { // it asks for more than can be done in time
					err = fmt.Errorf("got %d, want %d", resp.StatusCode, b.status)
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	each.Wait()
}
