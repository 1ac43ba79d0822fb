package ratelimit_test

import (
	"sync"
	"testing"
	"time"

	"animalstore/internal/ratelimit/redistest"
)

// TestCutConnectionChargesOnce cuts the connection again and again while requests are
// under way. No request is sent twice, and none is stuck waiting for a new connection.
// TestReconnectingDelaysNoRequest has the exact bound.
func TestCutConnectionChargesOnce(t *testing.T) {
	t.Parallel()
	proxy := redistest.NewProxy(t, redistest.Start(t))
	f := newFleet(t, proxy.URL(), 0)
	f.awayFromMidnight()
	key := enterprise(1, 1_000_000, 1_000_000_000)
	f.burst(1, 1, key)
	proxy.Commands()
	var admitted, asked int64
	for range 5 {
		f.eventually("limits are shared", func() bool { return !f.anyFallback() })
		shared := f.servers[0].Stats().Shared
		var cut sync.WaitGroup
		cut.Go(func() {
			f.eventually("requests are under way", func() bool { return f.servers[0].Stats().Shared > shared+100 || f.anyFallback() })
			proxy.Drop()
		})
		c := f.burst(64, 20, key)
		cut.Wait()
		admitted += c.total()
		asked += 64 * 20
		if c.slowest > stuck {
			t.Errorf("a request took %v when the connection was cut, want %v or so", c.slowest, longestWait)
		}
	}
	if admitted != asked {
		t.Errorf("got %d of %d requests admitted, want all", admitted, asked)
	}
	s := f.servers[0].Stats()
	if s.Failures == 0 {
		t.Error("got no failed call, want some")
	}
	// The server itself calls for keys it has to sync and to probe.
	if got, most := proxy.Commands()["evalsha"], s.Calls+10*s.Outages+20; got > most {
		t.Errorf("got %d calls on the wire for %d calls, want none twice", got, s.Calls)
	}
	in := f.servers[0]
	f.eventually("limits are shared", func() bool { return !f.anyFallback() })
	f.eventually("the day has all requests", func() bool { return f.dayUsed(in, key) >= admitted })
	// A call that got no reply may have been counted.
	if got, most := f.dayUsed(in, key), admitted+f.failures()+1; got > most {
		t.Errorf("got %d requests counted, want %d to %d", got, admitted, most)
	}
}

// TestScriptFlush makes Redis forget the script while requests are under way.
func TestScriptFlush(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := newFleet(t, server.URL(), 0, 0)
	for _, in := range f.servers {
		in.UseLongTimeout()
	}
	key := enterprise(1, 1_000, 1_000_000)
	for range 5 {
		f.pass(61 * time.Second)
		var flush sync.WaitGroup
		flush.Go(func() {
			if err := server.Do("SCRIPT", "FLUSH").Error(); err != nil {
				t.Error(err)
			}
		})
		if got := f.burst(32, 40, key).total(); got != key.Limits.PerMinute {
			t.Errorf("got %d admitted, want %d", got, key.Limits.PerMinute)
		}
		flush.Wait()
	}
	if f.failures() != 0 {
		t.Errorf("a flush of scripts counted as an outage:%s", f.logs())
	}
}
