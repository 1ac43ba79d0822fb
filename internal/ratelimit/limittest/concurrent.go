package limittest

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"animalstore"
)

// testConcurrent checks that concurrent requests are each counted once.
func testConcurrent(t *testing.T, newSubject New) {
	const goroutines = 200

	// attack makes requests from all goroutines and counts the decisions.
	attack := func(c *client, requests int64) (admitted, bans int64) {
		var allowed, banned, failed atomic.Int64
		var wg sync.WaitGroup
		start := make(chan struct{})
		for range goroutines {
			wg.Go(func() {
				<-start
				for range requests {
					d, err := c.s.Take(context.Background(), c.key)
					switch {
					case err != nil:
						failed.Add(1)
					case d.Allowed:
						allowed.Add(1)
					case d.BannedNow:
						banned.Add(1)
					}
				}
			})
		}
		close(start)
		wg.Wait()
		if n := failed.Load(); n > 0 {
			c.t.Errorf("%d requests failed", n)
		}
		return allowed.Load(), banned.Load()
	}

	t.Run("exactly the limit is admitted", func(t *testing.T) {
		limits := animalstore.Limits{PerMinute: 300, PerDay: 1_000}
		c := newClient(t, newSubject, limits)
		for round, want := range []int64{300, 300, 300, 100, 300} {
			if got, _ := attack(c, 2); got != want {
				t.Fatalf("round %d: got %d admitted, want %d", round, got, want)
			}
			if want < limits.PerMinute { // the day is used up
				c.at(midnightAfter(c.now))
			}
			c.wait(61 * time.Second)
			c.must(c.s.Restart())
		}
	})
	t.Run("one strike of many causes the ban", func(t *testing.T) {
		c := newClient(t, newSubject, animalstore.Limits{PerMinute: 5, PerDay: 1_000_000})
		for round := range 5 {
			c.untilRefused()
			c.wait(1001 * time.Millisecond)
			if _, bans := attack(c, 2); bans != 1 {
				t.Fatalf("round %d: got %d decisions with a new ban, want 1", round, bans)
			}
			c.at(c.status().BannedUntil.Milli())
		}
	})
}
