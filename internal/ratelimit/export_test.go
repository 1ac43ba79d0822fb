package ratelimit

import (
	"context"
	"strconv"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
)

// MaxAddresses is how many addresses are remembered.
const MaxAddresses = maxAddresses

// DropIdle drops the idle keys of all shards at once; Run does one at a time.
func (m *Memory) DropIdle() {
	for i := range m.shard {
		m.dropIdle(&m.shard[i])
	}
}

// SetTimeout is for tests in which Redis responds at first and later doesn't.
func (r *Redis) SetTimeout(d time.Duration) { r.timeout = d }

// SetClock makes the script use this clock instead of Redis's.
func (r *Redis) SetClock(clock func() int64) { r.clock = clock }

// Sibling returns another Redis on r's connections, whose script uses clock.
func (r *Redis) Sibling(store SharedStore, now func() time.Time, clock func() int64) *Redis {
	sibling := newRedis(RedisConfig{Environment: "test", Store: store, Now: now, Log: r.log})
	sibling.client, sibling.clock, sibling.timeout = r.client, clock, r.timeout
	return sibling
}

// StartFallback starts the fallback as a failed call does.
func (r *Redis) StartFallback() { r.startFallback(errLate) }

// Save writes all changes to the store now.
func (r *Redis) Save(ctx context.Context) error { return r.local.Save(ctx) }

// Unreported is the number of keys that Redis will be sent.
func (r *Redis) Unreported() int {
	r.reportsMu.Lock()
	defer r.reportsMu.Unlock()
	return len(r.reports)
}

// Merged returns a merged with b.
func Merged(a, b db.LimitState) db.LimitState {
	mergeStates(&a, b)
	return a
}

// Matters reports whether anything in s applies at now.
func Matters(s db.LimitState, now int64) bool { return stillMatters(&s, now) }

// SendState sends Redis a key's state and returns Redis's state afterwards.
func (r *Redis) SendState(t testing.TB, keyID int64, s db.LimitState) db.LimitState {
	t.Helper()
	rep, err := r.call(time.Minute, r.prefix+strconv.FormatInt(keyID, 10), opRead, &animalstore.Key{ID: keyID}, stateText(s))
	if err != nil {
		t.Fatal(err)
	}
	return rep.state
}
