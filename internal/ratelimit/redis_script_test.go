package ratelimit_test

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/ratelimit"
	"animalstore/internal/ratelimit/redistest"
)

var noon = time.Date(2026, 3, 10, 12, 0, 0, 250e6, time.UTC)

// onRedis returns a limiter on a server, whose script uses the given clock.
func onRedis(t testing.TB, server *redistest.Server, store ratelimit.SharedStore, clock *time.Time) *ratelimit.Redis {
	return newRedis(t, server, store, time.Now).
		Sibling(store, func() time.Time { return *clock }, func() int64 { return clock.UnixMilli() })
}

func mustTake(t testing.TB, l ratelimit.Limiter, key *animalstore.Key) ratelimit.Decision {
	t.Helper()
	d, err := l.Take(context.Background(), key)
	if err != nil {
		t.Fatalf("Take: %v", err)
	}
	return d
}

// TestScriptMergesLikeGo: the script and mergeStates must merge two states alike.
func TestScriptMergesLikeGo(t *testing.T) {
	server := redistest.Shared(t)
	clock := noon
	r := onRedis(t, server, newMemoryStore(), &clock)
	random := rand.New(rand.NewPCG(1, 2))
	// Few values, so that ends and bans are often the same.
	some := func(values ...int64) int64 { return values[random.IntN(len(values))] }
	at := clock.UnixMilli()
	state := func() db.LimitState {
		s := db.LimitState{
			Minute:  db.Window{Used: some(0, 3, 9), End: some(0, at-1, at+500, at+60_000), Refused: some(0, at-2000, at)},
			Day:     db.Window{Used: some(0, 3, 9, 1<<52), End: some(0, at, at/1000*1000+86_400_000), Refused: some(0, at-5000)},
			Strikes: some(0, 1, 99), StrikesSince: some(0, at-700_000, at-5),
		}
		if s.BannedAt = some(0, at-10_000, at-9_000); s.BannedAt > 0 {
			s.BannedUntil, s.BanLevel = some(at-1000, at+300_000), some(1, 4)
		}
		return s
	}
	for i := range 2_000 {
		first, second := state(), state()
		want := ratelimit.Merged(first, second)
		id := int64(i + 1)
		if got := r.LookWith(t, id, first); got != first {
			t.Fatalf("a key unknown to Redis\n got %+v\nwant %+v", got, first)
		}
		if got := r.LookWith(t, id, second); ratelimit.Matters(first, at) && got != want {
			t.Fatalf("%+v\nmerged with %+v\n got %+v\nwant %+v", first, second, got, want)
		}
	}
}

// TestMergeKeepsTheLater: merging an older state changes nothing. Otherwise a late
// save could refund a day or lift a ban.
func TestMergeKeepsTheLater(t *testing.T) {
	key := &animalstore.Key{ID: 1, Limits: animalstore.Limits{PerMinute: 3, PerDay: 300}}
	store := newMemoryStore()
	clock := noon
	m := ratelimit.NewMemory(store, func() time.Time { return clock }, discard)
	var history []db.LimitState
	for i := range 4_000 {
		mustTake(t, m, key)
		clock = clock.Add(time.Duration(i%700) * time.Millisecond)
		if err := m.Save(t.Context()); err != nil {
			t.Fatal(err)
		}
		history = append(history, store.state(1))
	}
	if last := history[len(history)-1]; last.BanLevel == 0 {
		t.Fatalf("got no ban in the whole history: %+v", last)
	}
	for i, later := range history {
		for _, back := range []int{1, 7, 400} {
			if i < back {
				continue
			}
			if got := ratelimit.Merged(later, history[i-back]); got != later {
				t.Fatalf("state %d merged with the one %d before\n got %+v\nwant %+v", i, back, got, later)
			}
		}
	}
}

// TestStatesExpire: Redis stores a state only for as long as it matters.
func TestStatesExpire(t *testing.T) {
	server := redistest.Shared(t)
	r := newRedis(t, server, newMemoryStore(), time.Now)
	ttl := func(id int64) time.Duration {
		t.Helper()
		left, err := server.Do("PTTL", fmt.Sprint("animalstore:production:limits:", id)).AsInt64()
		if err != nil {
			t.Fatal(err)
		}
		return time.Duration(left) * time.Millisecond
	}
	now := time.Now()
	midnight := now.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
	for i, c := range []struct {
		name  string
		state db.LimitState
		till  time.Time
	}{
		{"a minute", db.LimitState{Minute: db.Window{Used: 1, End: now.Add(40 * time.Second).UnixMilli()}}, now.Add(40 * time.Second)},
		{"a day", db.LimitState{Day: db.Window{Used: 1, End: midnight.UnixMilli()}}, midnight},
		{"strikes", db.LimitState{Strikes: 3, StrikesSince: now.UnixMilli()}, now.Add(10 * time.Minute)},
		{"a ban", db.LimitState{BannedAt: now.UnixMilli(), BannedUntil: now.Add(time.Hour).UnixMilli(), BanLevel: 2}, now.Add(25 * time.Hour)},
		{"a ban that was lifted in the day", db.LimitState{BannedAt: now.UnixMilli() - 5000, BannedUntil: now.UnixMilli() - 1000, BanLevel: 2}, now.Add(24*time.Hour - time.Second)},
	} {
		r.LookWith(t, int64(i+1), c.state)
		want := time.Until(c.till)
		if got := ttl(int64(i + 1)); got > want+time.Second || got < want-30*time.Second {
			t.Errorf("%s: expires in %v, want %v", c.name, got, want)
		}
	}
	r.LookWith(t, 100, db.LimitState{Minute: db.Window{Used: 9, End: now.UnixMilli() - 1}})
	if n, err := server.Do("EXISTS", "animalstore:production:limits:100").AsInt64(); err != nil || n != 0 {
		t.Errorf("a state that doesn't matter: got %d stored, %v, want none", n, err)
	}

	// The state of a request expires at the end of the day, or of a minute that
	// extends into the next.
	key := &animalstore.Key{ID: 200, Limits: animalstore.Limits{PerMinute: 10, PerDay: 100}}
	mustTake(t, r, key)
	latest := time.Now().Add(61 * time.Second)
	if midnight.After(latest) {
		latest = midnight
	}
	if got := ttl(200); got <= 0 || got > time.Until(latest)+time.Second {
		t.Errorf("a request's state expires in %v, want %v", got, time.Until(latest))
	}
}

// TestLimitsOfAnySize: numbers in the script are exact up to 2^53, limits go up
// to 2^63.
func TestLimitsOfAnySize(t *testing.T) {
	server := redistest.Shared(t)
	clock := noon
	r := onRedis(t, server, newMemoryStore(), &clock)
	for i, limit := range []int64{1, 1<<53 - 1, 1 << 53, 1<<53 + 1, math.MaxInt64 - 1, math.MaxInt64} {
		for j, limits := range []animalstore.Limits{{PerMinute: limit, PerDay: math.MaxInt64}, {PerMinute: limit, PerDay: limit}} {
			key := &animalstore.Key{ID: int64(10*i + j + 1), Limits: limits}
			for used := int64(1); used <= min(3, limit); used++ {
				want := ratelimit.Decision{Allowed: true, Limit: limit, Remaining: limit - used, Reset: mustTake(t, r, &animalstore.Key{ID: 999, Limits: small}).Reset}
				if limit == 1 && j == 1 {
					want.Reset = noon.Truncate(24 * time.Hour).Add(24 * time.Hour).Unix()
				}
				if got := mustTake(t, r, key); got != want {
					t.Errorf("request %d of a limit of %d: got %+v, want %+v", used, limit, got, want)
				}
			}
		}
	}
	// The largest count that can be compared exactly is never reached, but a state
	// may contain it.
	key := &animalstore.Key{ID: 500, Limits: animalstore.Limits{PerMinute: 1 << 53, PerDay: 1 << 53}}
	used := db.Window{Used: 1<<53 - 1, End: noon.UnixMilli() + 30_000}
	r.LookWith(t, 500, db.LimitState{Minute: used, Day: used})
	if got := mustTake(t, r, key); !got.Allowed || got.Remaining != 0 {
		t.Errorf("the last request of 2^53: got %+v, want it admitted with none remaining", got)
	}
	if got := mustTake(t, r, key); got.Allowed {
		t.Errorf("the request after 2^53: got %+v, want it refused", got)
	}
}

// TestDeploymentsAreSeparate: key 1 of staging isn't key 1 of production.
func TestDeploymentsAreSeparate(t *testing.T) {
	server := redistest.Shared(t)
	key := &animalstore.Key{ID: 1, Limits: animalstore.Limits{PerMinute: 1, PerDay: 10}}
	for _, env := range []animalstore.Environment{animalstore.Production, animalstore.Staging} {
		r, err := ratelimit.NewRedis(ratelimit.RedisConfig{URL: server.URL(), Environment: env, Store: newMemoryStore(), Now: time.Now, Log: discard})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if d := mustTake(t, r, key); !d.Allowed {
			t.Errorf("%s: got %+v, want the first request admitted", env, d)
		}
	}
	names, err := server.Do("KEYS", "*:1").AsStrSlice()
	if err != nil || len(names) != 2 || strings.ContainsAny(strings.Join(names, ""), "{}") {
		t.Errorf("got %q, %v, want two names", names, err)
	}
}

// TestForeignState: a value that isn't a state is ignored.
func TestForeignState(t *testing.T) {
	server := redistest.Shared(t)
	r := newRedis(t, server, newMemoryStore(), time.Now)
	key := enterprise(1, 3, 100)
	mustTake(t, r, key)
	for _, text := range []string{"", "hello", "1 2 3", "1 2 3 4 5 6 7 8 9 10 11 12"} {
		if err := server.Do("SET", "animalstore:production:limits:1", text).Error(); err != nil {
			t.Fatal(err)
		}
		if d := mustTake(t, r, key); r.Stats().FallbackDecisions > 0 || d.Limit != 3 {
			t.Errorf("%q: got %+v, decided without Redis: %d", text, d, r.Stats().FallbackDecisions)
		}
	}
	if d := mustTake(t, r, key); d.Allowed {
		t.Errorf("after five requests of three: got %+v, want it refused", d)
	}
}

// TestPassword: the address may contain a user and a password. With a wrong one the
// limiter falls back as it does without Redis.
func TestPassword(t *testing.T) {
	server := redistest.Start(t)
	if err := server.Do("ACL", "SETUSER", "shop", "on", ">hunter2", "~animalstore:*", "+@all").Error(); err != nil {
		t.Fatal(err)
	}
	if err := server.Do("ACL", "SETUSER", "default", "off").Error(); err != nil {
		t.Fatal(err)
	}
	for user, fallback := range map[string]bool{"shop:hunter2@": false, "shop:hunter3@": true, "": true} {
		log := &logText{}
		r, err := ratelimit.NewRedis(ratelimit.RedisConfig{
			URL: "redis://" + user + server.Addr, Environment: animalstore.Production, Store: newMemoryStore(), Now: time.Now, Log: slog.New(slog.NewTextHandler(log, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if got := fallsBack(t, r, fallback); got != fallback || strings.Contains(log.String(), "hunter") {
			t.Errorf("as %q: got fallback %v, want %v; the log:\n%s", user, got, fallback, log)
		}
	}
}

// fallsBack reports whether r decides without Redis. A busy machine may need several attempts
// to connect, so it gets a minute if it should share.
func fallsBack(t *testing.T, r *ratelimit.Redis, wanted bool) bool {
	if wanted {
		return r.Stats().Fallback
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	var probing sync.WaitGroup
	probing.Go(func() { r.Run(ctx) })
	for r.Stats().Fallback && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
	}
	cancel()
	probing.Wait()
	return r.Stats().Fallback
}
