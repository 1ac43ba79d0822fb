package ratelimit_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/ratelimit"
	"animalstore/internal/ratelimit/limittest"
	"animalstore/internal/ratelimit/redistest"
	"animalstore/internal/testenv"
)

// TestRedis_Slow alternates between three servers, whose own clocks are hours apart.
func TestRedis_Slow(t *testing.T) {
	testRedis(t, redistest.Start(t), 40)
}

// TestRedisCluster_Slow does the same on a Cluster, where only the connections differ.
func TestRedisCluster_Slow(t *testing.T) {
	testRedis(t, redistest.StartCluster(t, false), 3, "concurrent")
}

// redisServer is a Redis of any topology.
type redisServer interface {
	URL() string
	Flush()
}

func testRedis(t *testing.T, server redisServer, sequences int, only ...string) {
	first := newRedis(t, server, newMemoryStore(), time.Now)
	limittest.Run(t, func(t testing.TB) limittest.Subject {
		server.Flush()
		s := &redisSubject{server: server, first: first, store: newMemoryStore(), skews: []time.Duration{0, time.Hour, -5 * time.Hour}}
		s.start()
		return s
	}, testenv.Count(sequences, 10_000), only...)
}

// TestRedisThatForgets_Slow has one server and a Redis that is empty after every restart:
// the server must send it the complete state.
func TestRedisThatForgets_Slow(t *testing.T) {
	server := redistest.Start(t)
	first := newRedis(t, server, newMemoryStore(), time.Now)
	limittest.Run(t, func(t testing.TB) limittest.Subject {
		server.Flush()
		s := &redisSubject{server: server, first: first, store: newMemoryStore(), skews: []time.Duration{0}, forgets: true}
		s.start()
		return s
	}, testenv.Count(20, 10_000), "bans")
}

// TestRedisClock_Slow: limits use Redis's clock, not the servers' own.
func TestRedisClock_Slow(t *testing.T) {
	server, store := redistest.Start(t), newMemoryStore()
	key := enterprise(1, 10, 1_000)
	var servers []*ratelimit.Redis
	for _, skew := range []time.Duration{0, time.Hour, -time.Hour} {
		servers = append(servers, newRedis(t, server, store, func() time.Time { return time.Now().Add(skew) }))
	}
	for i := range 12 {
		d := mustTake(t, servers[i%3], key)
		if wait := time.Until(time.Unix(d.Reset, 0)); d.Allowed != (i < 10) || wait > 61*time.Second {
			t.Errorf("request %d: got %+v, which resets in %v, want 10 admitted and a reset within 61 s", i+1, d, wait)
		}
	}
	for i, r := range servers {
		if off := time.Until(r.Now()).Abs(); off > time.Minute {
			t.Errorf("server %d: Now is off from Redis's time by %v", i, off)
		}
	}
}

// redisSubject is a group of servers on one Redis and one store.
type redisSubject struct {
	server  redisServer
	first   *ratelimit.Redis // whose connections they use
	store   *memoryStore
	skews   []time.Duration // of the servers' own clocks
	forgets bool            // Redis is empty after a restart
	servers []*ratelimit.Redis
	now     atomic.Int64
	last    atomic.Int64 // the server of the last request
}

func (s *redisSubject) start() {
	s.servers = nil
	for _, skew := range s.skews {
		now := func() time.Time { return time.UnixMilli(s.now.Load()).Add(skew) }
		s.servers = append(s.servers, s.first.Sibling(s.store, now, s.now.Load))
	}
}

// newRedis returns a limiter.
func newRedis(t testing.TB, server redisServer, store ratelimit.SharedStore, now func() time.Time) *ratelimit.Redis {
	t.Helper()
	r, err := ratelimit.NewRedis(ratelimit.RedisConfig{
		URL: server.URL(), Environment: animalstore.Production, Store: store, Now: now, Log: discard,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func (s *redisSubject) next() *ratelimit.Redis {
	return s.servers[int(s.last.Add(1))%len(s.servers)]
}

func (s *redisSubject) Take(ctx context.Context, key *animalstore.Key) (ratelimit.Decision, error) {
	return s.next().Take(ctx, key)
}

func (s *redisSubject) Status(ctx context.Context, key *animalstore.Key) (ratelimit.Status, error) {
	return s.next().Status(ctx, key)
}

func (s *redisSubject) SetClock(now time.Time) { s.now.Store(now.UnixMilli()) }

func (s *redisSubject) Save() error {
	for _, r := range s.servers {
		if err := r.Save(context.Background()); err != nil {
			return err
		}
	}
	return nil
}

func (s *redisSubject) Restart() error {
	err := s.Save()
	if s.forgets {
		s.server.Flush()
	}
	s.start()
	return err
}

func (s *redisSubject) Kill() error {
	s.start()
	return nil
}

func (s *redisSubject) KillForgets() bool { return false }
