package limittest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/testenv"
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

	for _, p := range plans {
		t.Run(fmt.Sprintf("%s: %d goroutines admit exactly the limit", p.name, goroutines), func(t *testing.T) {
			c := newClient(t, newSubject, p.limits)
			requests := p.limits.PerMinute/goroutines + 1
			rounds := 40
			switch {
			case testenv.Soak:
			case testing.Short():
				rounds = 4
			case isCostly(c.s):
				rounds = 12
			}
			var spent int64
			for round := range rounds {
				want := min(p.limits.PerMinute, p.limits.PerDay-spent)
				got, _ := attack(c, requests)
				if got != want {
					t.Fatalf("round %d: got %d admitted, want %d", round, got, want)
				}
				if spent += got; spent == p.limits.PerDay {
					spent = 0
					c.at(midnightAfter(c.now))
				}
				c.wait(61 * time.Second)
				if round%(rounds/4) == rounds/4-1 {
					c.must(c.s.Restart())
				}
			}
		})
	}
	t.Run("one strike of many causes the ban", func(t *testing.T) {
		c := newClient(t, newSubject, animalstore.Limits{PerMinute: 5, PerDay: 1_000_000})
		for round := range 20 {
			c.untilRefused()
			c.wait(1001 * time.Millisecond)
			if _, bans := attack(c, 2); bans != 1 {
				t.Fatalf("round %d: got %d decisions with a new ban, want 1", round, bans)
			}
			c.at(c.status().BannedUntil.Milli())
		}
	})
}
