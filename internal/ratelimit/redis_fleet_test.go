package ratelimit_test

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/ratelimit"
	"animalstore/internal/testenv"
)

func enterprise(id, perMinute, perDay int64) *animalstore.Key {
	return &animalstore.Key{ID: id, Plan: animalstore.PlanEnterprise, Limits: animalstore.Limits{PerMinute: perMinute, PerDay: perDay}}
}

// fleet is several running servers on one Redis and one store, with a common clock
// that a test can advance.
type fleet struct {
	t       testing.TB
	store   *memoryStore
	servers []*instance

	mu    sync.RWMutex
	later time.Duration // by which the clock was advanced
}

// instance is one server.
type instance struct {
	*ratelimit.Redis
	usage *ratelimit.Usage
	calls atomic.Int64 // begun
	stop  func()
}

// newFleet starts a server for each skew of a server's own clock.
func newFleet(t testing.TB, url string, skews ...time.Duration) *fleet {
	t.Helper()
	f := &fleet{t: t, store: newMemoryStore()}
	// Keep away from midnight: the tests advance the clock by some minutes.
	if now := f.now().UTC(); now.Hour() >= 22 {
		f.later = 3 * time.Hour
	}
	for _, skew := range skews {
		f.start(url, skew)
	}
	return f
}

// start adds a server.
func (f *fleet) start(url string, skew time.Duration) *instance {
	f.t.Helper()
	in := &instance{}
	log := slog.New(slog.NewTextHandler(f.t.Output(), nil))
	r, err := ratelimit.NewRedis(ratelimit.RedisConfig{
		URL: url, Environment: animalstore.Production, Store: f.store, Log: log,
		Now: func() time.Time { return f.now().Add(skew) },
	})
	if err != nil {
		f.t.Fatal(err)
	}
	in.calls.Store(r.Stats().Calls)
	r.SetClock(func() int64 {
		f.mu.RLock()
		defer f.mu.RUnlock()
		in.calls.Add(1)
		return time.Now().Add(f.later).UnixMilli()
	})
	in.Redis, in.usage = r, ratelimit.NewUsage(f.store, r.Now, log)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { r.Run(ctx) })
	running.Go(func() { in.usage.Run(ctx) })
	in.stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
		r.Close()
	})
	f.t.Cleanup(in.stop)
	f.servers = append(f.servers, in)
	return in
}

// setTimeout sets how long all servers wait for Redis: briefly in a test in which it is
// frozen, and longer again before its replies count.
func (f *fleet) setTimeout(d time.Duration) {
	for _, in := range f.servers {
		in.SetTimeout(d)
	}
}

// now is the time passed to the script.
func (f *fleet) now() time.Time {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return time.Now().Add(f.later)
}

// pass advances the clock, between calls: one that was sent the time before would set
// Redis's clock back.
func (f *fleet) pass(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	testenv.Eventually(f.t, "no call is in progress", func() bool {
		for _, in := range f.servers {
			if in.calls.Load() != in.Stats().Calls {
				return false
			}
		}
		return true
	})
	f.later += d
}

// take makes one request and records its usage as the API does.
func (in *instance) take(key *animalstore.Key) (ratelimit.Decision, error) {
	d, err := in.Take(context.Background(), key)
	if err == nil {
		in.usage.Record(key.ID, d.Allowed)
	}
	return d, err
}

// burst has clients make concurrent requests, each to a different server than the
// one before. It returns how many each server admitted, and their sum.
func (f *fleet) burst(clients, each int, key *animalstore.Key) (admitted []int64, total int64) {
	f.t.Helper()
	counts := make([]atomic.Int64, len(f.servers))
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() {
			for i := range each {
				at := (c + i) % len(f.servers)
				d, err := f.servers[at].take(key)
				if err != nil {
					f.t.Errorf("Take: %v", err)
				}
				if d.Allowed {
					counts[at].Add(1)
				}
			}
		})
	}
	wg.Wait()
	for i := range counts {
		admitted = append(admitted, counts[i].Load())
		total += counts[i].Load()
	}
	return admitted, total
}

// exact advances the clock by a window and checks that the servers together admit exactly
// the limit. There are few more requests than that, so that no refusals ban the key.
func (f *fleet) exact(when string, key *animalstore.Key) (admitted int64) {
	f.t.Helper()
	f.shared()
	f.pass(61 * time.Second)
	_, admitted = f.burst(6, int(key.Limits.PerMinute)/6+2, key)
	if admitted != key.Limits.PerMinute {
		f.t.Errorf("%s: got %d admitted in a window, want %d", when, admitted, key.Limits.PerMinute)
	}
	return admitted
}

// shared waits until no server is in fallback.
func (f *fleet) shared() {
	f.t.Helper()
	testenv.Eventually(f.t, "limits are shared", func() bool { return f.inFallback() == 0 })
}

// inFallback is the number of servers that decide without Redis.
func (f *fleet) inFallback() (n int) {
	for _, in := range f.servers {
		if in.Stats().Fallback {
			n++
		}
	}
	return n
}

// saveUsage saves what all servers counted, as they do twice a second. What Redis is sent
// after it lost data is complete only then.
func (f *fleet) saveUsage() {
	f.t.Helper()
	for _, in := range f.servers {
		if err := in.usage.Save(context.Background()); err != nil {
			f.t.Fatal(err)
		}
	}
}

// failures is the number of calls that Redis didn't respond. It may have counted their
// requests.
func (f *fleet) failures() (n int64) {
	for _, in := range f.servers {
		n += in.Stats().Failures
	}
	return n
}

// dayUsed checks that every server soon counts all requests of a key today.
func (f *fleet) dayUsed(key *animalstore.Key, admitted int64) {
	f.t.Helper()
	for i, in := range f.servers {
		var got int64
		testenv.Eventually(f.t, "the day has all requests", func() bool {
			st, err := in.Status(context.Background(), key)
			if err != nil {
				f.t.Fatalf("Status: %v", err)
			}
			got = st.Day.Limit - st.Day.Remaining
			return got >= admitted
		})
		if most := admitted + f.failures(); got > most {
			f.t.Errorf("server %d: got %d requests counted, want %d to %d", i, got, admitted, most)
		}
	}
}

// ban gets a key banned by one server and returns the ban's end.
func (f *fleet) ban(in *instance, key *animalstore.Key) int64 {
	f.t.Helper()
	for range key.Limits.PerMinute + 1 {
		in.take(key)
	}
	f.pass(1001 * time.Millisecond)
	for range key.Limits.PerMinute + 100 {
		if d, err := in.take(key); err != nil || d.BannedNow {
			return d.Reset
		}
	}
	f.t.Fatal("no ban after hammering")
	return 0
}

// banned checks that every server refuses a key until the same instant.
func (f *fleet) banned(when string, key *animalstore.Key, reset int64) {
	f.t.Helper()
	for i, in := range f.servers {
		if d, err := in.take(key); err != nil || d.Code != animalstore.KeyBanned || d.Reset != reset {
			f.t.Errorf("%s, server %d: got %+v, %v, want key_banned until %d", when, i, d, err, reset)
		}
	}
}
