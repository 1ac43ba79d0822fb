package ratelimit_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"animalstore/internal/ratelimit/redistest"
	"animalstore/internal/testenv"
)

// failover is a Redis with a replica that takes over.
type failover interface {
	URL() string
	Failover()
	// Pair returns the current primary that fails and its replica.
	Pair() (primary, replica *redistest.Server)
	// Rejoin makes a primary that came back a replica.
	Rejoin(old *redistest.Server)
}

func TestClusterFailover(t *testing.T) {
	testenv.OnlySoak(t, "failovers")
	testFailover(t, redistest.StartCluster(t, true))
}

func TestSentinelFailover(t *testing.T) {
	testenv.OnlySoak(t, "failovers")
	testFailover(t, redistest.StartSentinel(t))
}

// testFailover replaces the primary under load: killed, frozen, and as planned.
func testFailover(t *testing.T, redis failover) {
	kinds := []struct {
		name     string
		fail     func(*redistest.Server)
		comeBack func(*redistest.Server)
	}{
		{"killed", (*redistest.Server).Kill, (*redistest.Server).Restart},
		{"frozen", (*redistest.Server).Stop, (*redistest.Server).Cont},
		{"planned", func(*redistest.Server) { redis.Failover() }, func(*redistest.Server) {}},
	}
	f := newFleet(t, redis.URL(), 0, time.Hour)
	rude := enterprise(1_000_000, 1, 1_000_000)
	var banEnd int64
	for range 4 { // the fourth lasts a day, longer than the test
		f.pass(max(0, time.Unix(banEnd, 0).Sub(f.now())))
		banEnd = f.ban(f.servers[0], rude)
	}
	for round := range 20 {
		kind := kinds[round%len(kinds)]
		what := fmt.Sprintf("round %d, %s", round, kind.name)
		busy := enterprise(int64(round+1), 60, 1_000_000)
		f.exact(what+", before", busy)
		primary, replica := redis.Pair()
		stopLoad := f.load()

		kind.fail(primary)
		f.banned(what, rude, banEnd)
		testenv.Eventually(t, what+": the replica serves", replica.Serves)
		if kind.name == "planned" { // until then, limits are shared through the old primary
			testenv.Eventually(t, what+": the old primary is a replica", func() bool { return !primary.IsPrimary() })
		}
		newKey := int64(600_000 + 1_000*round)
		testenv.Eventually(t, what+": limits are shared again", func() bool {
			newKey++
			_, total := f.burst(2, 10, enterprise(newKey, 10, 1_000))
			return f.inFallback() == 0 && total == 10
		})
		stopLoad()
		f.banned(what+", afterwards", rude, banEnd)
		f.exact(what+", afterwards", busy)

		kind.comeBack(primary)
		redis.Rejoin(primary)
	}
}

// load makes requests with many keys until it is stopped. All must be admitted.
func (f *fleet) load() (stop func()) {
	stopping := make(chan struct{})
	var wg sync.WaitGroup
	for client := range 8 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stopping:
					return
				case <-time.After(time.Millisecond):
				}
				key := enterprise(int64(500_000+(client+i)%50), 1_000_000, 1_000_000_000)
				if d, err := f.servers[i%len(f.servers)].take(key); err != nil || !d.Allowed {
					f.t.Errorf("a request under load: got %+v, %v", d, err)
				}
			}
		})
	}
	return func() { close(stopping); wg.Wait() }
}

// TestReshard moves the slots of keys between the primaries of a Cluster while they are
// in use. Every request is admitted up to the limit, and counted once.
func TestReshard(t *testing.T) {
	testenv.OnlySoak(t, "resharding")
	redis := redistest.StartCluster(t, false)
	f := newFleet(t, redis.URL(), 0, time.Hour)
	for id := range int64(5) {
		key := enterprise(id+1, 10_000_000, 10_000_000)
		moved := make(chan struct{})
		go func() {
			defer close(moved)
			for range 3 {
				redis.MoveSlot(fmt.Sprint("animalstore:production:limits:", key.ID))
			}
		}()
		requests := int64(0)
		for moving := true; moving; requests += 32 * 5 {
			select {
			case <-moved:
				moving = false
			default:
			}
			if _, admitted := f.burst(32, 5, key); admitted != 32*5 {
				t.Errorf("key %d: got %d of %d admitted while its slot moved", key.ID, admitted, 32*5)
			}
		}
		f.dayUsed(key, requests)
	}
	if f.failures() != 0 {
		t.Error("moving slots counted as an outage")
	}
}

// TestShardAway: while one primary of a Cluster doesn't respond, the fallback lasts, although
// the others respond to the probe.
func TestShardAway(t *testing.T) {
	testenv.OnlySoak(t, "outages of a Cluster")
	redis := redistest.StartCluster(t, false)
	for i, away := range redis.Primaries {
		f := newFleet(t, redis.URL(), 0)
		in, other := f.servers[0], redis.Primaries[(i+1)%3]
		away.Stop()
		stopLoad := f.load()
		testenv.Eventually(t, "the outage is noticed", func() bool { return f.inFallback() == 1 })
		other.ResetCalls()
		testenv.Eventually(t, "there were some probes", func() bool { return other.Calls()["cluster|slots"] >= 3 })
		if s := in.Stats(); !s.Fallback || s.Outages != 1 {
			t.Errorf("primary %d is away: got %+v, want one lasting outage", i, s)
		}
		away.Cont()
		f.shared()
		stopLoad()
		in.stop()
	}
}
