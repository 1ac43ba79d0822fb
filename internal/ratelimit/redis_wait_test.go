package ratelimit_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"animalstore"
	"animalstore/internal/ratelimit"
)

// longestWait is how long a request may wait for Redis.
const longestWait = 100 * time.Millisecond

// stuck is longer than a busy machine takes for a request that waits for longestWait. The
// tests in this file check longestWait itself, in fake time.
const stuck = 10 * time.Second

// onFakeRedis runs a test with a limiter on a Redis that exists only in memory.
func onFakeRedis(t *testing.T, test func(t *testing.T, redis *fakeRedis, r *ratelimit.Redis)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		redis := &fakeRedis{}
		r, err := ratelimit.NewRedisOn(ratelimit.RedisConfig{Environment: animalstore.Production, Store: newMemoryStore(), Now: time.Now, Log: discard}, redis.dial)
		if err != nil {
			t.Fatal(err)
		}
		var running sync.WaitGroup
		ctx, cancel := context.WithCancel(t.Context())
		running.Go(func() { r.Run(ctx) })
		if waited := slowestOf(t, r, 10); waited != 0 || r.Stats().Fallback {
			t.Errorf("a Redis that answers: got a wait of %v and %+v, want none and no fallback", waited, r.Stats())
		}
		test(t, redis, r)
		cancel()
		running.Wait()
		r.Close()
		redis.drop()
	})
}

// slowestOf makes concurrent requests and reads and returns how long the slowest took.
func slowestOf(t *testing.T, r *ratelimit.Redis, requests int) time.Duration {
	t.Helper()
	var slowest atomic.Int64
	var wg sync.WaitGroup
	timed := func(f func() error) {
		wg.Go(func() {
			began := time.Now()
			if err := f(); err != nil {
				t.Errorf("a request failed: %v", err)
			}
			raise(&slowest, time.Since(began))
		})
	}
	for id := range int64(requests) {
		key := enterprise(id+1, 1_000_000, 1_000_000_000)
		timed(func() error { _, err := r.Take(t.Context(), key); return err })
		timed(func() error { _, err := r.Status(t.Context(), key); return err })
	}
	wg.Wait()
	return time.Duration(slowest.Load())
}

// TestFrozenRedisDelaysNoneOfMany: even if more requests wait for Redis than fit into the
// library's queue of 1,024 calls, none waits longer than it may.
func TestFrozenRedisDelaysNoneOfMany(t *testing.T) {
	t.Parallel()
	onFakeRedis(t, func(t *testing.T, redis *fakeRedis, r *ratelimit.Redis) {
		redis.freeze()
		if waited := slowestOf(t, r, 3_000); waited == 0 || waited > longestWait {
			t.Errorf("a request waited %v as Redis froze, want at most %v", waited, longestWait)
		}
		if waited := slowestOf(t, r, 10); waited != 0 {
			t.Errorf("a request waited %v for a Redis that is known not to answer, want no wait", waited)
		}
	})
}

// TestBrokenReplies: no request fails because of what Redis replies.
func TestBrokenReplies(t *testing.T) {
	t.Parallel()
	for _, broken := range []string{
		"$-1\r\n", "_\r\n", ":1\r\n", "+OK\r\n", "-ERR out of order\r\n", "*0\r\n", "*1\r\n$2\r\nhi\r\n", "%0\r\n", "HTTP/1.1 400 Bad Request\r\n\r\n",
		"$0\r\n\r\n", "$7\r\nunknown\r\n", bulk("admitted"), bulk("admitted x 1 1 1 0 1 1 0 0 0 0 0 0"),
		bulk("read 1 1 1 0 1 1 0 0 0 0 0 0"), bulk("sold 1 1 1 0 1 1 0 0 0 0 0 0"),
	} {
		onFakeRedis(t, func(t *testing.T, redis *fakeRedis, r *ratelimit.Redis) {
			redis.breakReplies(broken)
			slowestOf(t, r, 10)
			if !r.Stats().Fallback {
				t.Errorf("%q: got no fallback from a Redis with such replies", broken)
			}
		})
	}
}

func bulk(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }

// TestReconnectingDelaysNoRequest: no request waits for a new connection longer than it
// may.
func TestReconnectingDelaysNoRequest(t *testing.T) {
	t.Parallel()
	onFakeRedis(t, func(t *testing.T, redis *fakeRedis, r *ratelimit.Redis) {
		redis.freeze()
		redis.drop()
		synctest.Wait()
		if waited := slowestOf(t, r, 64); waited == 0 || waited > longestWait {
			t.Errorf("a request waited %v, want at most %v", waited, longestWait)
		}
		if !r.Stats().Fallback {
			t.Error("got no fallback from a Redis that doesn't answer")
		}
	})
}
