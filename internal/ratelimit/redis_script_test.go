package ratelimit_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/ratelimit"
	"animalstore/internal/ratelimit/redistest"
)

var noon = time.Date(2026, 3, 10, 12, 0, 0, 250e6, time.UTC)

// atNoon returns a limiter on a server, at noon.
func atNoon(t testing.TB, server *redistest.Server) *ratelimit.Redis {
	store := newMemoryStore()
	return newRedis(t, server, store, time.Now).
		Sibling(store, func() time.Time { return noon }, func() int64 { return noon.UnixMilli() })
}

func mustTake(t testing.TB, l ratelimit.Limiter, key *animalstore.Key) ratelimit.Decision {
	t.Helper()
	d, err := l.Take(context.Background(), key)
	if err != nil {
		t.Fatalf("Take: %v", err)
	}
	return d
}

// TestScriptMergesLikeGo_Slow: the script and mergeStates must merge two states alike.
func TestScriptMergesLikeGo_Slow(t *testing.T) {
	r := atNoon(t, redistest.Start(t))
	random := rand.New(rand.NewPCG(1, 2))
	// Few values, so that ends and bans are often the same.
	some := func(values ...int64) int64 { return values[random.IntN(len(values))] }
	at := noon.UnixMilli()
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
	for id := range int64(1_000) {
		first, second := state(), state()
		want := ratelimit.Merged(first, second)
		if got := r.SendState(t, id, first); got != first {
			t.Fatalf("a key unknown to Redis\n got %+v\nwant %+v", got, first)
		}
		if got := r.SendState(t, id, second); ratelimit.Matters(first, at) && got != want {
			t.Fatalf("%+v\nmerged with %+v\n got %+v\nwant %+v", first, second, got, want)
		}
	}
}

// TestMergeKeepsTheLater: merging an older state changes nothing. Otherwise a late
// save could refund a day or lift a ban.
func TestMergeKeepsTheLater(t *testing.T) {
	key := enterprise(1, 3, 300)
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
		for _, back := range []int{1, 7, 400} {
			if i < back {
				continue
			}
			if got := ratelimit.Merged(history[i], history[i-back]); got != history[i] {
				t.Fatalf("state %d merged with the one %d before\n got %+v\nwant %+v", i, back, got, history[i])
			}
		}
	}
	if history[len(history)-1].BanLevel == 0 {
		t.Fatal("got no ban in the whole history")
	}
}

// TestStatesExpire_Slow: Redis stores a state only for as long as it matters.
func TestStatesExpire_Slow(t *testing.T) {
	server := redistest.Start(t)
	r := newRedis(t, server, newMemoryStore(), time.Now)
	now := time.Now()
	for i, c := range []struct {
		name  string
		state db.LimitState
		want  time.Duration // 0: it isn't stored
	}{
		{"a minute", db.LimitState{Minute: db.Window{Used: 1, End: now.Add(40 * time.Second).UnixMilli()}}, 40 * time.Second},
		{"a minute that is over", db.LimitState{Minute: db.Window{Used: 9, End: now.UnixMilli() - 1}}, 0},
		{"a day", db.LimitState{Day: db.Window{Used: 1, End: now.Add(9 * time.Hour).UnixMilli()}}, 9 * time.Hour},
		{"strikes", db.LimitState{Strikes: 3, StrikesSince: now.UnixMilli()}, 10 * time.Minute},
		{"a ban", db.LimitState{BannedAt: now.UnixMilli(), BannedUntil: now.Add(time.Hour).UnixMilli(), BanLevel: 2}, 25 * time.Hour},
		{"a ban that is over", db.LimitState{BannedAt: now.UnixMilli() - 5000, BannedUntil: now.UnixMilli() - 1000, BanLevel: 2}, 24*time.Hour - time.Second},
	} {
		r.SendState(t, int64(i+1), c.state)
		left, err := server.Do("PTTL", fmt.Sprint("animalstore:production:limits:", i+1)).AsInt64()
		got := max(0, time.Duration(left)*time.Millisecond)
		if err != nil || got > c.want+time.Second || got < c.want-30*time.Second {
			t.Errorf("%s: expires in %v, %v, want %v", c.name, got, err, c.want)
		}
	}
}

// TestLimitsOfAnySize_Slow: numbers in the script are exact up to 2^53, limits go up
// to 2^63.
func TestLimitsOfAnySize_Slow(t *testing.T) {
	r := atNoon(t, redistest.Start(t))
	for i, limit := range []int64{1<<53 - 1, 1 << 53, 1<<53 + 1, math.MaxInt64} {
		key := enterprise(int64(i+1), limit, math.MaxInt64)
		for used := int64(1); used <= 3; used++ {
			if got := mustTake(t, r, key); !got.Allowed || got.Limit != limit || got.Remaining != limit-used {
				t.Errorf("request %d of a limit of %d: got %+v", used, limit, got)
			}
		}
	}
}
