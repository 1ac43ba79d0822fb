package ratelimit_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/ratelimit/redistest"
)

func enterprise(id, perMinute, perDay int64) *animalstore.Key {
	return &animalstore.Key{ID: id, Plan: animalstore.PlanEnterprise, Limits: animalstore.Limits{PerMinute: perMinute, PerDay: perDay}}
}

// awayFromMidnight makes sure that the day doesn't end during a test that advances
// the clock by some minutes.
func (f *fleet) awayFromMidnight() {
	now := f.now().UTC()
	if left := now.Truncate(24 * time.Hour).Add(24 * time.Hour).Sub(now); left < 2*time.Hour {
		f.pass(left + time.Minute)
	}
}

// TestOutages makes Redis unreachable in different ways, under load, and reachable
// again.
func TestOutages(t *testing.T) {
	for _, o := range []struct {
		name       string
		begin, end func(*redistest.Server, *redistest.Proxy)
	}{
		{"killed", func(s *redistest.Server, _ *redistest.Proxy) { s.Kill() }, func(s *redistest.Server, _ *redistest.Proxy) { s.Restart() }},
		{"frozen", func(s *redistest.Server, _ *redistest.Proxy) { s.Stop() }, func(s *redistest.Server, _ *redistest.Proxy) { s.Cont() }},
		{"cut off", func(_ *redistest.Server, p *redistest.Proxy) { p.Cut() }, func(_ *redistest.Server, p *redistest.Proxy) { p.Restore() }},
		{"cut off and emptied", func(s *redistest.Server, p *redistest.Proxy) { p.Cut(); s.Flush() }, func(_ *redistest.Server, p *redistest.Proxy) { p.Restore() }},
	} {
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			proxy := redistest.NewProxy(t, server)
			f := newFleet(t, proxy.URL(), 0, time.Hour, -5*time.Hour)
			f.awayFromMidnight()
			busy := enterprise(1, 60, 100_000)
			rude, rudeLater := enterprise(2, 1, 100_000), enterprise(3, 1, 100_000)

			var banEnd int64
			for range 3 { // the third lasts an hour, longer than the test
				f.pass(max(0, time.Unix(banEnd, 0).Sub(f.now())))
				banEnd = f.ban(f.servers[0], rude)
			}
			f.banned("before", rude, banEnd)
			admitted := f.exact("before", busy)

			// The window is used up: from here on requests are admitted by servers
			// in fallback, each in its own window.
			o.begin(server, proxy)
			for range 3 {
				c := f.burst(64, 12, busy)
				admitted += c.total()
				for i, n := range c.admitted {
					if n > busy.Limits.PerMinute {
						t.Errorf("server %d admitted %d in a window, want at most %d", i, n, busy.Limits.PerMinute)
					}
				}
				f.banned("while it is gone", rude, banEnd)
				f.pass(61 * time.Second)
			}
			f.eventually("every server has noticed the outage", func() bool {
				f.banned("while it is gone", rude, banEnd)
				return f.allFallback()
			})
			laterEnd := f.ban(f.servers[1], rudeLater)

			o.end(server, proxy)
			f.eventually("limits are shared again", func() bool { return !f.anyFallback() })
			f.banned("when it is back", rude, banEnd)
			f.eventually("a ban from the outage applies on every server", func() bool {
				for _, in := range f.servers {
					if d, err := in.take(rudeLater); err != nil || d.Code != animalstore.KeyBanned || d.Reset != laterEnd {
						return false
					}
				}
				return true
			})
			admitted += f.exact("when it is back", busy)

			// A call that timed out may have been counted.
			most := admitted + f.failures()
			for i, in := range f.servers {
				f.eventually("the day has all requests", func() bool { return f.dayUsed(in, busy) >= admitted })
				if got := f.dayUsed(in, busy); got > most {
					t.Errorf("server %d: got %d requests counted, want %d to %d", i, got, admitted, most)
				}
				for line, most := range map[string]int64{"Redis does not answer": in.Stats().Outages, "Redis answers again": in.Stats().Outages} {
					if got := strings.Count(in.log.String(), line); got < 1 || int64(got) > most {
						t.Errorf("server %d: got %q in the log %d times in %d outages:\n%s", i, line, got, most, in.log)
					}
				}
			}
		})
	}
}

// TestFrozenRedisDelaysNoRequest: no request is stuck waiting for Redis, and none calls it
// once the outage is noticed. TestFrozenRedisDelaysNoneOfMany has the exact bounds.
func TestFrozenRedisDelaysNoRequest(t *testing.T) {
	server := redistest.Start(t)
	f := newFleet(t, server.URL(), 0)
	key := enterprise(1, 1_000_000, 1_000_000_000)
	f.burst(64, 5, key)
	for round := range 3 {
		f.eventually("limits are shared", func() bool { return !f.anyFallback() })
		server.Stop()
		first := f.burst(64, 3, key)
		if first.slowest > stuck {
			t.Errorf("round %d: a request took %v as Redis froze, want %v or so", round, first.slowest, longestWait)
		}
		if !f.allFallback() {
			t.Fatalf("round %d: the frozen Redis wasn't noticed", round)
		}
		before, begun, began := f.servers[0].Stats(), f.servers[0].calls.Load(), time.Now()
		then := f.burst(64, 50, key)
		after := f.servers[0].Stats()
		// The background calls too.
		background := 3 + int64(time.Since(began)/(200*time.Millisecond))
		if f.servers[0].calls.Load() > begun+background || after.Shared != before.Shared || after.FallbackDecisions-before.FallbackDecisions != 64*50 {
			t.Errorf("round %d: got %+v and then %+v, want every request decided without a call", round, before, after)
		}
		t.Logf("slowest request: %v as it froze, %v afterwards", first.slowest, then.slowest)
		server.Cont()
	}
}

// TestReplyAfterFallback: a reply that comes after a server began to decide on its own
// admits nothing on top of that. In a Cluster, calls to other primaries still succeed then.
func TestReplyAfterFallback(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := &fleet{t: t, store: newMemoryStore(), longTimeout: true}
	in, key := f.start(server.URL(), 0), enterprise(1, 1, 100)
	server.Stop()
	var late sync.WaitGroup
	late.Go(func() {
		if d, err := in.take(key); err != nil || d.Allowed {
			t.Errorf("the late reply: got %+v, %v, want it refused", d, err)
		}
	})
	f.eventually("a call is in progress", func() bool { return in.calls.Load() > in.Stats().Calls })
	in.StartFallback()
	if d, err := in.take(key); err != nil || !d.Allowed {
		t.Errorf("in the fallback: got %+v, %v, want it admitted", d, err)
	}
	server.Cont()
	late.Wait()
}

// TestFlushRefundsNothing empties Redis at different moments.
func TestFlushRefundsNothing(t *testing.T) {
	server := redistest.Shared(t)
	f := newFleet(t, server.URL(), 0, time.Hour, -5*time.Hour)
	for _, in := range f.servers {
		in.UseLongTimeout()
	}
	f.awayFromMidnight()
	busy, rude := enterprise(1, 300, 100_000), enterprise(2, 1, 100_000)
	admitted := int64(0)

	t.Run("a minute, once it is saved", func(t *testing.T) {
		for _, in := range f.servers { // a fresh minute for each
			f.pass(61 * time.Second)
			before := f.burst(1, 200, busy).total()
			f.eventually("the count is saved", func() bool { return f.store.state(busy.ID).Day.Used == admitted+before })
			server.Flush()
			in.take(rude) // another key comes first
			after := f.burst(3, 100, busy).total()
			if before+after != busy.Limits.PerMinute {
				t.Errorf("got %d and, after a flush, %d admitted, want %d in all", before, after, busy.Limits.PerMinute)
			}
			admitted += before + after
		}
	})
	t.Run("a day", func(t *testing.T) {
		for range 5 { // in the middle of a burst, with nothing saved
			f.pass(61 * time.Second)
			done := make(chan struct{})
			go func() { server.Flush(); close(done) }()
			admitted += f.burst(6, 100, busy).total()
			<-done
		}
		for i, in := range f.servers {
			f.eventually("the day has all requests", func() bool { return f.dayUsed(in, busy) >= admitted })
			if got := f.dayUsed(in, busy); got != admitted {
				t.Errorf("server %d: got %d requests counted, want %d", i, got, admitted)
			}
		}
	})
	t.Run("a ban", func(t *testing.T) {
		f.pass(time.Hour)
		for i, in := range f.servers {
			key := enterprise(int64(10+i), 1, 1000)
			end := f.ban(in, key)
			server.Flush() // at once
			f.banned("after a flush", key, end)
			server.Flush()
			f.banned("after another", key, end)
		}
	})
	if f.anyFallback() || f.failures() != 0 {
		t.Errorf("a flush counted as an outage:%s", f.logs())
	}
}

// TestRestartInAnOutage: what a server admitted without Redis isn't lost if it stops
// before it could send it to Redis.
func TestRestartInAnOutage(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server)
	f := newFleet(t, proxy.URL(), 0)
	f.awayFromMidnight()
	key, rude := enterprise(1, 1_000, 100_000), enterprise(2, 1, 100_000)
	admitted := f.burst(1, 40, key).total()
	proxy.Cut()
	admitted += f.burst(1, 30, key).total()
	end := f.ban(f.servers[0], rude)
	f.servers[0].stop()
	f.servers = nil
	proxy.Restore() // Redis kept running and has counted 40

	in := f.start(proxy.URL(), 0)
	f.eventually("limits are shared", func() bool { return !f.anyFallback() })
	f.banned("after a restart", rude, end)
	if got, most := f.dayUsed(in, key), admitted+f.failures()+1; got < admitted || got > most {
		t.Errorf("got %d requests counted after a restart, want %d to %d", got, admitted, most)
	}
}

// TestStartWithoutRedis: a server starts without Redis, and shares limits as soon as
// Redis is there.
func TestStartWithoutRedis(t *testing.T) {
	server := redistest.Start(t)
	server.Kill()
	f := newFleet(t, server.URL(), 0, 0)
	if !f.allFallback() {
		t.Fatal("got no fallback without Redis")
	}
	key := enterprise(1, 10, 1000)
	for i, n := range f.burst(2, 40, key).admitted {
		if n != 10 {
			t.Errorf("server %d admitted %d without Redis, want 10", i, n)
		}
	}
	server.Restart()
	f.exact("when Redis is there", key)
}

// TestOneRoundTrip counts the commands on the wire and those that Redis counted.
func TestOneRoundTrip(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server)
	f := newFleet(t, proxy.URL(), 0)
	f.servers[0].UseLongTimeout()
	keys := []*animalstore.Key{enterprise(1, 10, 1000), enterprise(2, 100_000, 1_000_000), enterprise(3, 1, 1)}
	f.burst(64, 2, keys[0]) // opens the connections
	f.pass(61 * time.Second)
	proxy.Commands()
	server.ResetCalls()
	const clients, each = 16, 20
	for _, key := range keys { // one known, two new
		f.burst(clients, each, key)
	}
	requests := int64(len(keys) * clients * each)
	got := proxy.Commands()
	sent := got["evalsha"]
	if sent != requests || len(got) != 1 {
		t.Errorf("got %v on the wire for %d requests, want an evalsha for each", got, requests)
	}
	// Redis counts what the script calls under the same names.
	calls := server.Calls()
	if calls["evalsha"] != sent || calls["get"] != sent || calls["set"] > sent || calls["time"] > 0 {
		t.Errorf("Redis counted %v for %d calls, want an evalsha for each", calls, sent)
	}
	for _, name := range []string{"eval", "script|load", "client|setinfo", "multi"} {
		if calls[name] > 0 {
			t.Errorf("got %s %d times, want none", name, calls[name])
		}
	}
}
