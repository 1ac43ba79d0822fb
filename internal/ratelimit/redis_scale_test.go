package ratelimit_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/ratelimit/redistest"
	"animalstore/internal/testenv"
)

// TestManyInstances measures limits on a growing number of servers: shared, in
// fallback and shared again. docs/scaling.md has its table.
func TestManyInstances(t *testing.T) {
	const limit = 60
	var table strings.Builder
	fmt.Fprintf(&table, "%9s  %6s  %18s  %5s\n", "instances", "shared", "fallback, in total", "again")
	sizes := []int{1, 3, 20}
	if testenv.Soak {
		sizes = []int{1, 2, 3, 5, 10, 20, 50, 100}
	}
	for _, n := range sizes {
		server := redistest.Start(t)
		f := newFleet(t, server.URL(), make([]time.Duration, n)...)
		for _, in := range f.servers {
			in.UseLongTimeout()
		}
		f.awayFromMidnight()
		key := enterprise(1, limit, 1_000_000)
		// So few refusals that a slow machine, on which some of them come after the
		// grace second, doesn't ban the key.
		each := limit/n + 1
		shared := f.burst(n, each, key)

		server.Kill()
		f.pass(61 * time.Second)
		f.burst(n, n, enterprise(2, 1_000_000, 1_000_000)) // until every server has noticed
		fallback := f.burst(n, limit+1, key)

		server.Restart()
		f.eventually("limits are shared again", func() bool { return !f.anyFallback() })
		f.pass(61 * time.Second)
		again := f.burst(n, each, key)

		fmt.Fprintf(&table, "%9d  %6d  %18d  %5d\n", n, shared.total(), fallback.total(), again.total())
		if shared.total() != limit || again.total() != limit {
			t.Errorf("%d servers admitted %d and, after an outage, %d in a minute, want %d", n, shared.total(), again.total(), limit)
		}
		for i, got := range fallback.admitted {
			if got > limit {
				t.Errorf("server %d of %d admitted %d without Redis, want at most %d", i, n, got, limit)
			}
		}
		if most := int64(n * limit); fallback.total() != most {
			t.Errorf("%d servers admitted %d without Redis, want %d", n, fallback.total(), most)
		}
		admitted := shared.total() + fallback.total() + again.total()
		f.eventually("the day has all requests", func() bool { return f.dayUsed(f.servers[n/2], key) >= admitted })
		if got := f.dayUsed(f.servers[n/2], key); got != admitted {
			t.Errorf("%d servers: the day has %d requests, want %d", n, got, admitted)
		}
		for _, in := range f.servers {
			in.stop()
		}
		server.Kill()
	}
	t.Logf("admitted in a minute, of a plan of %d:\n%s", limit, table.String())
}

// TestClockSkew: limits use Redis's clock, not the servers' own.
func TestClockSkew(t *testing.T) {
	server := redistest.Shared(t)
	skews := []time.Duration{0, time.Hour, -time.Hour}
	for i, limit := range []int64{60, 300, 1_000, 7} {
		f := &fleet{t: t, store: newMemoryStore()}
		for _, skew := range skews {
			in := f.start(server.URL(), skew)
			in.SetClock(nil) // Redis's own
			in.UseLongTimeout()
		}
		key := enterprise(int64(i+1), limit, 1_000_000)
		if got := f.burst(64, int(limit)/32+2, key).total(); got != limit {
			t.Errorf("got %d admitted by servers whose clocks are an hour apart, want %d", got, limit)
		}
		for j, in := range f.servers {
			if off := time.Until(in.Now()).Abs(); off > 5*time.Second {
				t.Errorf("server %d: Now is off from Redis's time by %v", j, off)
			}
			d, err := in.Take(context.Background(), key)
			if wait := time.Until(time.Unix(d.Reset, 0)); err != nil || d.Code != animalstore.RateLimitExceeded || wait < 0 || wait > 61*time.Second {
				t.Errorf("server %d: got %+v, %v, which resets in %v, want a refusal for at most 61 s", j, d, err, wait)
			}
			in.stop()
		}
	}
}
