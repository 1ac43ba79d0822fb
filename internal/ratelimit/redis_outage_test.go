package ratelimit_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/ratelimit/redistest"
	"animalstore/internal/testenv"
)

// frozenTimeout is how long servers wait for a frozen Redis.
const frozenTimeout = 50 * time.Millisecond

// freeze makes Redis not respond, while connections stay open.
func (f *fleet) freeze(redis *redistest.Server) {
	redis.Stop()
	f.setTimeout(frozenTimeout)
}

// thaw ends freeze.
func (f *fleet) thaw(redis *redistest.Server) {
	f.setTimeout(testenv.Deadline)
	redis.Cont()
}

// TestFallback_Slow: while Redis is unreachable, each server applies the limits on its own.
// Afterwards they share them again, and the day has all requests.
func TestFallback_Slow(t *testing.T) {
	for _, outage := range []string{"killed", "frozen", "cut off"} {
		t.Run(outage, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			proxy := redistest.NewProxy(t, server)
			f := newFleet(t, proxy.URL(), 0, time.Hour, -5*time.Hour)
			begin, end := proxy.Cut, proxy.Restore
			switch outage {
			case "killed":
				begin, end = server.Kill, server.Restart
			case "frozen":
				begin, end = func() { f.freeze(server) }, func() { f.thaw(server) }
			}
			key := enterprise(1, 60, 100_000)
			admitted := f.exact("before", key)

			begin()
			for window := range 2 {
				f.pass(61 * time.Second)
				by, total := f.burst(9, 24, key)
				admitted += total
				for i, n := range by {
					if n > 60 || window > 0 && n != 60 { // Redis may have counted some before it went
						t.Errorf("window %d: server %d admitted %d, want 60", window, i, n)
					}
				}
			}
			if got := f.inFallback(); got != 3 {
				t.Errorf("got %d of 3 servers in fallback", got)
			}
			f.saveUsage()
			end()
			admitted += f.exact("afterwards", key)
			f.dayUsed(key, admitted)
		})
	}
}

// TestReport_Slow: after an outage Redis is sent, once, what all servers together admitted
// without it, even for keys that aren't used any more.
func TestReport_Slow(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server)
	f := newFleet(t, proxy.URL(), 0, 0)
	key := enterprise(1, 100, 1_000)
	f.burst(2, 5, key)
	proxy.Cut()
	f.burst(2, 20, key)
	if got := f.inFallback(); got != 2 {
		t.Fatalf("got %d of 2 servers in fallback", got)
	}
	f.saveUsage()
	proxy.Restore()
	f.shared()
	testenv.Eventually(t, "Redis has the sum of the day", func() bool {
		state, err := server.Do("GET", "animalstore:production:limits:1").ToString()
		return err == nil && strings.Fields(state)[3] == "50"
	})
	for i, in := range f.servers {
		testenv.Eventually(t, "all reports are sent", func() bool { return in.Unreported() == 0 })
		if s := in.Stats(); s.Outages != 1 {
			t.Errorf("server %d: got %+v, want one outage", i, s)
		}
	}
}

// TestBansSurvive_Slow: a ban applies on every server during and after an outage, when it
// began there, and when Redis or a server loses its memory.
func TestBansSurvive_Slow(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server)
	f := newFleet(t, proxy.URL(), 0, time.Hour)
	before, during := enterprise(1, 1, 1_000), enterprise(2, 1, 1_000)
	beforeEnd := f.ban(f.servers[0], before)
	server.Flush()
	f.burst(1, 2, during) // so Redis knows the key, without the ban
	f.banned("Redis was emptied", before, beforeEnd)
	proxy.Cut()
	f.banned("during an outage", before, beforeEnd)
	duringEnd := f.ban(f.servers[1], during)
	proxy.Restore()
	f.shared()
	f.banned("after the outage", before, beforeEnd)
	if d, err := f.servers[1].take(during); err != nil || d.Code != animalstore.KeyBanned {
		t.Errorf("a ban from the outage, on its own server: got %+v, %v, want key_banned", d, err)
	}
	testenv.Eventually(t, "the ban applies on the other server", func() bool {
		d, err := f.servers[0].take(during)
		return err == nil && d.Code == animalstore.KeyBanned && d.Reset == duringEnd
	})
	for _, in := range f.servers {
		in.stop()
	}
	server.Flush()
	f.servers = nil
	f.start(proxy.URL(), 0)
	f.banned("everything was restarted", before, beforeEnd)
	f.banned("everything was restarted", during, duringEnd)
}

// TestFrozenRedisDelaysNoRequest_Slow: every request gets its decision, even if more wait than
// fit into the library's queue of 1,024 calls, and none waits once the outage is noticed.
func TestFrozenRedisDelaysNoRequest_Slow(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := newFleet(t, server.URL(), 0)
	in := f.servers[0]
	f.freeze(server)
	var wg sync.WaitGroup
	for id := range int64(1_500) {
		wg.Go(func() {
			if d, err := in.take(enterprise(id+1, 10, 100)); err != nil || !d.Allowed {
				t.Errorf("got %+v, %v, want it admitted", d, err)
			}
		})
	}
	wg.Wait()
	calls := in.Stats().Failures
	f.burst(10, 10, enterprise(1, 10_000, 10_000))
	if s := in.Stats(); !s.Fallback || s.Failures != calls {
		t.Errorf("got %+v, want no request to call Redis", s)
	}
	f.thaw(server)
	f.shared()
}

// TestLateReply_Slow: a reply that is late leaves its own request to the server. Only several in
// a row make it decide on its own, until one is in time.
func TestLateReply_Slow(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := newFleet(t, server.URL(), 0)
	in, key := f.servers[0], enterprise(1, 100, 100)
	f.exact("before", enterprise(2, 1, 10)) // connects
	take := func(shared, fallback int64, outage bool) {
		t.Helper()
		before := in.Stats()
		if d, err := in.take(key); err != nil || !d.Allowed {
			t.Errorf("got %+v, %v, want it admitted", d, err)
		}
		if after := in.Stats(); after.Shared-before.Shared != shared || after.FallbackDecisions-before.FallbackDecisions != fallback || after.Fallback != outage {
			t.Errorf("got %+v after %+v, want %d more shared, %d not, and fallback %t", after, before, shared, fallback, outage)
		}
	}
	for range 2 {
		f.freeze(server)
		take(0, 1, false)
		take(0, 1, false)
		f.thaw(server)
		take(1, 0, false)
	}
	f.freeze(server)
	take(0, 1, false)
	take(0, 1, false)
	take(0, 1, true)
	f.thaw(server)
	f.shared()
	f.dayUsed(key, 9)
}

// TestReplyAfterFallback_Slow: a reply that comes after a server began to decide on its own
// admits nothing on top of that. In a Cluster, calls to other primaries still succeed then.
func TestReplyAfterFallback_Slow(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := newFleet(t, server.URL(), 0)
	in, key := f.servers[0], enterprise(1, 1, 100)
	server.Stop()
	var late sync.WaitGroup
	late.Go(func() {
		if d, err := in.take(key); err != nil || d.Allowed {
			t.Errorf("the late reply: got %+v, %v, want it refused", d, err)
		}
	})
	testenv.Eventually(t, "a call is in progress", func() bool { return in.calls.Load() > in.Stats().Calls })
	in.StartFallback()
	if d, err := in.take(key); err != nil || !d.Allowed {
		t.Errorf("in the fallback: got %+v, %v, want it admitted", d, err)
	}
	server.Cont()
	late.Wait()
}

// TestFlushRefundsNothing_Slow: after Redis was emptied, the day has what each server had admitted,
// although the first one that notices doesn't know the last requests of the others. Redis
// also forgets the script in the middle of a burst.
func TestFlushRefundsNothing_Slow(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := newFleet(t, server.URL(), 0, time.Hour, -5*time.Hour)
	key := enterprise(1, 300, 100_000)
	admitted := int64(0)
	for range testenv.Count(1, 20) {
		f.pass(61 * time.Second)
		var flush sync.WaitGroup
		flush.Go(func() {
			if err := server.Do("SCRIPT", "FLUSH").Error(); err != nil {
				t.Error(err)
			}
		})
		_, total := f.burst(6, 55, key)
		if flush.Wait(); total != 300 {
			t.Errorf("got %d admitted, want 300", total)
		}
		f.pass(61 * time.Second)
		f.store.fail(nil, errDisk) // so that only the second server knows its requests
		for range 5 {
			f.servers[1].take(key)
		}
		server.Flush()
		f.servers[0].take(key)
		f.store.fail(nil, nil)
		f.saveUsage() // as they do within half a second
		admitted += total + 5 + 1
		f.dayUsed(key, admitted)
	}
	if f.failures() != 0 {
		t.Error("emptying Redis counted as an outage")
	}
}

// TestCutConnectionChargesOnce_Slow cuts the connection while requests are in progress. None of
// them is sent twice.
func TestCutConnectionChargesOnce_Slow(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server)
	f := newFleet(t, proxy.URL(), 0)
	in, key := f.servers[0], enterprise(1, 1_000_000, 1_000_000)
	admitted := int64(0)
	const rounds = 2
	for range rounds {
		f.shared()
		shared := in.Stats().Shared
		var cut sync.WaitGroup
		cut.Go(func() {
			testenv.Eventually(t, "requests are in progress", func() bool { return in.Stats().Shared > shared+100 || in.Stats().Fallback })
			proxy.Drop()
		})
		_, total := f.burst(64, 20, key)
		admitted += total
		cut.Wait()
	}
	if admitted != rounds*64*20 {
		t.Errorf("got %d of %d requests admitted, want all", admitted, rounds*64*20)
	}
	// Probes continue: the calls that have begun are counted last, because all that Redis
	// got are among them.
	onTheWire := server.Calls()["evalsha"]
	if begun := in.calls.Load(); onTheWire > begun {
		t.Errorf("got %d calls on the wire for %d calls, want none twice", onTheWire, begun)
	}
}

// TestRestartInAnOutage_Slow: what a server admitted without Redis isn't lost if it stops
// before it could send it to Redis.
func TestRestartInAnOutage_Slow(t *testing.T) {
	t.Parallel()
	proxy := redistest.NewProxy(t, redistest.Start(t))
	f := newFleet(t, proxy.URL(), 0)
	key := enterprise(1, 1_000, 100_000)
	f.burst(1, 40, key)
	proxy.Cut()
	f.burst(1, 30, key)
	f.servers[0].stop()
	f.servers = nil
	proxy.Restore() // Redis kept running and has counted 40
	f.start(proxy.URL(), 0)
	f.dayUsed(key, 70)
}

// TestStartWithoutRedis_Slow: a server starts without Redis, and shares limits as soon as
// Redis is there.
func TestStartWithoutRedis_Slow(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	server.Kill()
	f := newFleet(t, server.URL(), 0, 0)
	key := enterprise(1, 10, 1000)
	if by, _ := f.burst(2, 40, key); by[0] != 10 || by[1] != 10 || f.inFallback() != 2 {
		t.Errorf("got %v admitted without Redis, %d servers in fallback, want 10 by each of 2", by, f.inFallback())
	}
	server.Restart()
	f.exact("when Redis is there", key)
}

// TestDemotedRedis_Slow: when the name of Redis leads to a new primary and the old one has
// become its replica, limits are shared again through the new one.
func TestDemotedRedis_Slow(t *testing.T) {
	t.Parallel()
	old, promoted := redistest.Start(t), redistest.Start(t)
	proxy := redistest.NewProxy(t, old)
	f := newFleet(t, proxy.URL(), 0)
	key := enterprise(1, 10, 1_000)
	f.exact("before", key)
	proxy.Redirect(promoted)
	host, port, _ := strings.Cut(promoted.Addr, ":")
	if err := old.Do("REPLICAOF", host, port).Error(); err != nil {
		t.Fatal(err)
	}
	f.burst(1, 1, enterprise(2, 10, 1_000)) // the replica refuses to write
	f.exact("afterwards", key)
	if n, err := promoted.Do("EXISTS", fmt.Sprint("animalstore:production:limits:", key.ID)).AsInt64(); err != nil || n != 1 {
		t.Errorf("got %d states in the new primary, %v, want 1", n, err)
	}
}
