package e2e

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"animalstore/internal/testenv"
)

// TestKeysShareFairly: a key that sends a lot of work at once, within its plan, doesn't
// make others wait until that work is done. make bench measures how long they wait.
func TestKeysShareFairly(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, database string, _ int) {
		if isURL(database) {
			testenv.Slow(t)
		}
		s := start(t, onDatabase(database))
		fillWithLongNames(t, s, loadKey(t, database))
		for _, keys := range []int{1, 4} {
			t.Run(fmt.Sprintf("%d keys", keys), func(t *testing.T) {
				if keys > 1 {
					testenv.Slow(t)
				}
				testFairness(t, s, keys)
			})
		}
	})
}

// longName is one of the longest names that a pet can have.
var longName = strings.Repeat("🦊", 1024)

func fillWithLongNames(t *testing.T, s *server, key string) {
	t.Helper()
	for range 100 {
		got, err := newClient(t, s, key).tryUntilStored("POST", "/v1/pets", newPetBody(longName, 1, "sold"))
		if err != nil {
			t.Fatal(err)
		}
		wantStatus(t, got, 201, "")
	}
}

// testFairness lets some keys send a burst of large pages while another key sends one
// small request at a time.
func testFairness(t *testing.T, s *server, keys int) {
	const requests, connections = 1000, 100
	other := newClient(t, s, loadKey(t, s.database))
	wantStatus(t, other.get(t, "/v1/pets?limit=1"), 200, "")
	ended := make(chan struct{})
	begun := time.Now()
	var all sync.WaitGroup
	defer all.Wait()
	for range keys {
		key := loadKey(t, s.database)
		all.Go(func() { sendBurst(t, s, key, requests, connections) })
	}
	go func() {
		all.Wait()
		close(ended)
	}()
	responses := 0
	for over := false; !over; {
		got := other.get(t, "/v1/pets?limit=1")
		if got.status != 503 { // a slow machine is too busy for anybody
			wantStatus(t, got, 200, "")
			responses++
		}
		select {
		case <-ended:
			over = true
		case <-time.After(5 * time.Millisecond):
		}
	}
	// If keys didn't share fairly, each small read would take most of the burst's time.
	if responses < 20 {
		t.Errorf("another key got %d responses within %v, want at least 20", responses, time.Since(begun))
	}
}

// sendBurst requests large pages over this many connections at once.
func sendBurst(t *testing.T, s *server, key string, requests, connections int) {
	var each sync.WaitGroup
	queue := make(chan struct{}, requests)
	for range requests {
		queue <- struct{}{}
	}
	close(queue)
	text := message("GET", "/v1/pets?limit=100", key, "")
	for range connections {
		each.Go(func() {
			c, err := tryDial(s)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			for range queue {
				c.SetDeadline(time.Now().Add(time.Minute))
				if _, err := io.WriteString(c, text); err != nil {
					t.Error(err)
					return
				}
				resp, err := http.ReadResponse(c.r, nil)
				if err == nil {
					_, err = io.Copy(io.Discard, resp.Body)
				}
				if err == nil && resp.StatusCode != 200 && resp.StatusCode != 503 { // it requests more than can be served in time
					err = fmt.Errorf("got %d, want 200", resp.StatusCode)
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
