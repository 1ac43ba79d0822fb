package ratelimit_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/ratelimit"
)

// fleet is several running servers on one Redis and one store, with a common clock
// that a test can advance.
type fleet struct {
	t       testing.TB
	store   *memoryStore
	servers []*instance

	longTimeout bool // for tests that must not depend on the machine's speed
	newKeys     int64

	mu    sync.RWMutex
	later time.Duration // by which the clock was advanced
}

// instance is one server.
type instance struct {
	*ratelimit.Redis
	usage *ratelimit.Usage
	log   *logText
	skew  time.Duration // of its own clock
	calls atomic.Int64  // begun
	stop  func()
}

func newFleet(t testing.TB, url string, skews ...time.Duration) *fleet {
	t.Helper()
	f := &fleet{t: t, store: newMemoryStore()}
	for _, skew := range skews {
		f.start(url, skew)
	}
	return f
}

// start adds a server.
func (f *fleet) start(url string, skew time.Duration) *instance {
	f.t.Helper()
	in := &instance{log: &logText{}, skew: skew}
	log := slog.New(slog.NewTextHandler(in.log, nil))
	r, err := ratelimit.NewRedis(ratelimit.RedisConfig{
		URL: url, Environment: animalstore.Production, Store: f.store, Log: log,
		Now: func() time.Time { return f.now().Add(skew) },
	})
	if err != nil {
		f.t.Fatal(err)
	}
	if f.longTimeout {
		r.UseLongTimeout()
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
	f.eventually("no call is under way", func() bool {
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

// tally is the result of many requests.
type tally struct {
	admitted []int64 // by server
	slowest  time.Duration
}

func (c tally) total() (n int64) {
	for _, a := range c.admitted {
		n += a
	}
	return n
}

// burst has clients make concurrent requests, each to a different server than the
// one before.
func (f *fleet) burst(clients, each int, key *animalstore.Key) tally {
	f.t.Helper()
	admitted := make([]atomic.Int64, len(f.servers))
	var slowest atomic.Int64
	var wg sync.WaitGroup
	start := make(chan struct{})
	for c := range clients {
		wg.Go(func() {
			<-start
			for i := range each {
				at := (c + i) % len(f.servers)
				began := time.Now()
				d, err := f.servers[at].take(key)
				raise(&slowest, time.Since(began))
				if err != nil {
					f.t.Errorf("Take: %v", err)
				}
				if d.Allowed {
					admitted[at].Add(1)
				}
			}
		})
	}
	close(start)
	wg.Wait()
	c := tally{slowest: time.Duration(slowest.Load())}
	for i := range admitted {
		c.admitted = append(c.admitted, admitted[i].Load())
	}
	return c
}

// failures is the number of calls that Redis didn't answer.
func (f *fleet) failures() (n int64) {
	for _, in := range f.servers {
		n += in.Stats().Failures
	}
	return n
}

// exact advances the clock by a window and checks that a burst admits exactly the
// limit. On a busy machine Redis may not answer in time, and then limits are not
// shared: such a round proves nothing and is repeated.
func (f *fleet) exact(when string, key *animalstore.Key) (admitted int64) {
	f.t.Helper()
	for range 20 {
		f.pass(61 * time.Second)
		f.eventually("limits are shared "+when, func() bool { return !f.anyFallback() })
		before := f.failures()
		c := f.burst(6, int(key.Limits.PerMinute)/6+10, key)
		admitted += c.total()
		if f.failures() != before {
			f.t.Logf("%s: Redis was too slow for this machine, once more", when)
			continue
		}
		if c.total() != key.Limits.PerMinute {
			f.t.Errorf("%s: got %d admitted in a window, want %d", when, c.total(), key.Limits.PerMinute)
		}
		return admitted
	}
	f.t.Fatalf("%s: Redis was too slow in 20 rounds", when)
	return 0
}

func (f *fleet) anyFallback() bool {
	for _, in := range f.servers {
		if in.Stats().Fallback {
			return true
		}
	}
	return false
}

func (f *fleet) allFallback() bool {
	for _, in := range f.servers {
		if !in.Stats().Fallback {
			return false
		}
	}
	return true
}

// dayUsed is the number of requests that the server in has counted today.
func (f *fleet) dayUsed(in *instance, key *animalstore.Key) int64 {
	f.t.Helper()
	st, err := in.Status(context.Background(), key)
	if err != nil {
		f.t.Fatalf("Status: %v", err)
	}
	return st.Day.Limit - st.Day.Remaining
}

// ban gets a key banned by one server and returns the ban's end.
func (f *fleet) ban(in *instance, key *animalstore.Key) int64 {
	f.t.Helper()
	for range 3 {
		for range key.Limits.PerMinute + 1 {
			in.take(key)
		}
		f.pass(1001 * time.Millisecond)
		for range key.Limits.PerMinute + 100 {
			if d, err := in.take(key); err != nil || d.BannedNow {
				return d.Reset
			}
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

func (f *fleet) eventually(what string, done func() bool) {
	f.t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			f.t.Fatalf("not within a minute: %s%s", what, f.logs())
		}
	}
}

func (f *fleet) logs() string {
	var b strings.Builder
	for i, in := range f.servers {
		fmt.Fprintf(&b, "\nserver %d: %+v\n%s", i, in.Stats(), in.log)
	}
	return b.String()
}

// logText is a log that can be read while it is being written.
type logText struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
