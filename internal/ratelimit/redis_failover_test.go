package ratelimit_test

import (
	"fmt"
	"sync"
	"sync/atomic"
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
	testenv.Slow(t)
	t.Parallel()
	testFailover(t, redistest.StartCluster(t, true))
}

func TestSentinelFailover(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	testFailover(t, redistest.StartSentinel(t, true))
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
	rounds := len(kinds)
	if testenv.Soak {
		rounds = 20
	}
	f := newFleet(t, redis.URL(), 0, time.Hour)
	f.awayFromMidnight()
	rude := enterprise(1_000_000, 1, 1_000_000)
	var banEnd int64
	for range 4 { // the fourth lasts a day, longer than the test
		f.pass(max(0, time.Unix(banEnd, 0).Sub(f.now())))
		banEnd = f.ban(f.servers[0], rude)
	}
	for round := range rounds {
		kind := kinds[round%len(kinds)]
		what := fmt.Sprintf("round %d, %s", round, kind.name)
		busy := enterprise(int64(round+1), 60, 1_000_000)
		f.exact(what+", before", busy)
		f.pass(61 * time.Second)
		f.eventually("limits are shared", func() bool { return !f.anyFallback() })
		primary, replica := redis.Pair()
		load := startLoad(f)

		kind.fail(primary)
		for i, n := range f.burst(8, 40, busy).admitted {
			if n > busy.Limits.PerMinute {
				t.Errorf("%s: server %d admitted %d in a window, want at most %d", what, i, n, busy.Limits.PerMinute)
			}
		}
		f.banned(what, rude, banEnd)
		f.eventually(what+": the replica serves", replica.Serves)
		serves := time.Now()
		if kind.name == "planned" { // until then, limits are shared through the old primary
			f.eventually(what+": the old primary is a replica", func() bool { return !primary.IsPrimary() })
		}
		f.eventually(what+": limits are shared again", f.shares)
		took, late := time.Since(serves), load.checkStopped(what)
		// A few seconds on a machine with time to spare.
		if allowed := 30*time.Second + 10*late; took > allowed {
			t.Errorf("%s: limits were shared again %v after the new primary served, want at most %v", what, took, allowed)
		}
		t.Logf("%s: shared again after %v; slowest request %v, latest timer %v; %d requests", what, took, time.Duration(load.slowest.Load()), late, load.requests.Load())
		f.banned(what+", afterwards", rude, banEnd)
		f.exact(what+", afterwards", busy)

		kind.comeBack(primary)
		redis.Rejoin(primary)
	}
}

// shares reports whether all servers share the limits of some new keys.
func (f *fleet) shares() bool {
	for range 4 {
		f.newKeys++
		if key := enterprise(600_000+f.newKeys, 10, 1_000); f.anyFallback() || f.burst(len(f.servers), 10, key).total() != 10 {
			return false
		}
	}
	return true
}

// load is a steady stream of requests with many keys.
type load struct {
	f        *fleet
	clients  repeater
	timers   repeater // for comparison, because a request may wait for a timer
	requests atomic.Int64
	slowest  atomic.Int64 // request
	late     atomic.Int64 // how late a timer was
}

func startLoad(f *fleet) *load {
	l := &load{f: f, clients: repeater{stop: make(chan struct{})}, timers: repeater{stop: make(chan struct{})}}
	for client := range 8 {
		l.clients.start(time.Millisecond, func(i int, _ time.Duration) { l.request(client, i) })
		l.timers.start(5*time.Millisecond, func(_ int, late time.Duration) { raise(&l.late, late) })
	}
	return l
}

// repeater repeats something until it is stopped.
type repeater struct {
	stop    chan struct{}
	running sync.WaitGroup
}

// start calls do after each pause, with how late the timer was.
func (r *repeater) start(pause time.Duration, do func(i int, late time.Duration)) {
	r.running.Go(func() {
		for i := 0; ; i++ {
			began := time.Now()
			select {
			case <-r.stop:
				return
			case <-time.After(pause):
			}
			do(i, time.Since(began)-pause)
		}
	})
}

func (r *repeater) wait() {
	close(r.stop)
	r.running.Wait()
}

func (l *load) request(client, i int) {
	key := enterprise(int64(500_000+(client+i)%50), 1_000_000, 1_000_000_000)
	began := time.Now()
	d, err := l.f.servers[i%len(l.f.servers)].take(key)
	raise(&l.slowest, time.Since(began))
	if err != nil || !d.Allowed {
		l.f.t.Errorf("a request under load: got %+v, %v", d, err)
	}
	l.requests.Add(1)
}

// raise makes most at least d.
func raise(most *atomic.Int64, d time.Duration) {
	for {
		if old := most.Load(); int64(d) <= old || most.CompareAndSwap(old, int64(d)) {
			return
		}
	}
}

// checkStopped ends the load and checks that no request was stuck. It returns how late timers were meanwhile: the machine delays requests as well.
func (l *load) checkStopped(what string) (late time.Duration) {
	l.f.t.Helper()
	l.clients.wait()
	l.timers.wait()
	late = time.Duration(l.late.Load())
	if slowest := time.Duration(l.slowest.Load()); slowest > stuck {
		l.f.t.Errorf("%s: a request took %v, want %v or so, with timers up to %v late", what, slowest, longestWait, late)
	}
	if l.requests.Load() == 0 {
		l.f.t.Errorf("%s: got no requests under load", what)
	}
	return late
}

// TestReshard moves the slots of keys between the primaries of a Cluster while they are
// in use. Every request is admitted up to the limit, and counted once.
func TestReshard(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	redis := redistest.StartCluster(t, false)
	f := &fleet{t: t, store: newMemoryStore(), longTimeout: true}
	f.start(redis.URL(), 0)
	f.start(redis.URL(), time.Hour)
	f.awayFromMidnight()
	for id := range int64(5) {
		key := enterprise(id+1, 10_000_000, 10_000_000)
		moved := make(chan struct{})
		go func() {
			defer close(moved)
			for range 3 {
				redis.MoveSlot(fmt.Sprint("animalstore:production:limits:", key.ID))
			}
		}()
		requests, admitted := int64(0), int64(0)
		for moving := true; moving; {
			select {
			case <-moved:
				moving = false
			default:
			}
			requests += 32 * 5
			admitted += f.burst(32, 5, key).total()
		}
		if counted := f.dayUsed(f.servers[0], key); admitted != requests || counted != requests {
			t.Errorf("key %d: got %d admitted and %d counted while its slot moved, want all %d", key.ID, admitted, counted, requests)
		}
		limited := *key
		limited.Limits.PerMinute = requests + 100
		if got := f.burst(32, 10, &limited).total(); got != 100 {
			t.Errorf("key %d: got %d admitted up to its limit, want 100", key.ID, got)
		}
		t.Logf("key %d: %d requests", key.ID, requests)
	}
	if f.failures() != 0 {
		t.Errorf("moving slots counted as an outage:%s", f.logs())
	}
}

// TestShardAway: while one primary of a Cluster doesn't answer, the fallback lasts, although
// the others answer the probe.
func TestShardAway(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	redis := redistest.StartCluster(t, false)
	for i, away := range redis.Primaries {
		f := newFleet(t, redis.URL(), 0)
		in, other := f.servers[0], redis.Primaries[(i+1)%3]
		away.Stop()
		load := startLoad(f)
		f.eventually("the outage is noticed", f.allFallback)
		other.ResetCalls()
		f.eventually("there were some probes", func() bool { return other.Calls()["cluster|slots"] >= 3 })
		if s := in.Stats(); !s.Fallback || s.Outages != 1 {
			t.Errorf("primary %d is away: got %+v, want one lasting outage", i, s)
		}
		away.Cont()
		f.eventually("limits are shared again", func() bool { return !f.anyFallback() })
		load.checkStopped(fmt.Sprintf("primary %d is away", i))
		in.stop()
	}
}
