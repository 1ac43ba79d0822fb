package ratelimit

import (
	"context"
	"testing"
	"time"

	"animalstore"
)

// DropIdle forgets the idle keys of all shards at once, where Run takes turns.
func (m *Memory) DropIdle() {
	for i := range m.shard {
		m.dropIdle(&m.shard[i])
	}
}

// WaitLong is for tests of what Redis decides, which must not depend on how fast
// a machine is.
func (r *Redis) WaitLong() { r.patience = time.Minute }

// SetClock has the script decide by this clock instead of Redis's.
func (r *Redis) SetClock(clock func() int64) { r.clock = clock }

// Another is a Redis of its own on r's connections. Its script decides by clock.
func (r *Redis) Another(store SharedStore, now func() time.Time, clock func() int64) *Redis {
	another := newRedis(RedisConfig{Environment: "test", Store: store, Now: now, Log: r.log})
	another.client, another.clock, another.patience = r.client, clock, r.patience
	return another
}

// Save writes what changed to the store now.
func (r *Redis) Save(ctx context.Context) error { return r.local.Save(ctx) }

// Settle tells Redis of the keys whose turn it is now.
func (r *Redis) Settle(ctx context.Context) { r.settle(ctx) }

// Merged is what a and b know together.
func Merged(a, b animalstore.LimitState) animalstore.LimitState {
	merge(&a, b)
	return a
}

// Matters reports whether anything of s counts at now.
func Matters(s animalstore.LimitState, now int64) bool { return matters(&s, now) }

// LookWith tells Redis of a key and returns what it knows then.
func (r *Redis) LookWith(t testing.TB, keyID int64, s animalstore.LimitState) animalstore.LimitState {
	t.Helper()
	rep, err := r.call(time.Minute, "look", &animalstore.Key{ID: keyID}, stateText(s))
	if err != nil {
		t.Fatal(err)
	}
	return rep.state
}
