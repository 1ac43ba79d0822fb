package ratelimit_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/ratelimit"
	"animalstore/internal/ratelimit/redistest"
)

// TestSharedCallDecidesEach: a call for several requests decides them as if each had come
// alone, in the same order.
func TestSharedCallDecidesEach(t *testing.T) {
	server := redistest.Shared(t)
	clock := noon
	r := onRedis(t, server, newMemoryStore(), &clock)
	random := rand.New(rand.NewPCG(3, 4))
	some := func(values ...int64) int64 { return values[random.IntN(len(values))] }
	at := clock.UnixMilli()
	seen := map[animalstore.Code]bool{}
	for i := range int64(2_000) {
		key := &animalstore.Key{ID: i + 1, Limits: animalstore.Limits{PerMinute: some(1, 7, 100), PerDay: some(1, 7, 1000, 1<<53)}}
		s := animalstore.LimitState{
			Minute:  animalstore.Window{Used: some(0, 3, 7, 96), End: some(0, at, at+500, at+60_000, at+60_750, at+61_000), Refused: some(0, at-2000, at)},
			Day:     animalstore.Window{Used: some(0, 3, 7, 996), End: some(0, at, at+500, at/1000*1000+86_400_000, at+86_400_000), Refused: some(0, at-5000)},
			Strikes: some(0, 95, 99), StrikesSince: some(0, at-700_000, at-5),
		}
		if i%2 == 0 { // never refused
			s.Minute.Refused, s.Day.Refused, s.Strikes, s.StrikesSince = 0, 0, 0, 0
		} else if s.BannedAt = some(0, 0, at-10_000); s.BannedAt > 0 {
			s.BannedUntil, s.BanLevel = some(at-1000, at+300_000), some(1, 4)
			key.UnbannedAt = animalstore.AtMilli(some(0, at-20_000, at-5_000))
		}
		requests := some(1, 2, 9, 150)
		if err := server.Do("SET", fmt.Sprint("animalstore:test:limits:", key.ID), ratelimit.StateText(s)).Error(); err != nil {
			t.Fatal(err)
		}
		got, gotState := r.TakeTogether(t, key, requests)
		want, wantState := ratelimit.DecideEach(key, requests, s, at)
		if !slices.Equal(got, want) || gotState != wantState {
			t.Fatalf("%d requests of %+v with %+v\n got %+v %+v\nwant %+v %+v", requests, key, s, got, gotState, want, wantState)
		}
		for _, d := range got {
			seen[d.Code] = true
			seen["banned now"] = seen["banned now"] || d.BannedNow
		}
	}
	if len(seen) != 5 {
		t.Errorf("got only the outcomes %v", seen)
	}
}

// TestRequestsShareCalls: requests of a key that arrive together need fewer calls, and
// each has its own result.
func TestRequestsShareCalls(t *testing.T) {
	t.Parallel()
	r := newRedis(t, redistest.Start(t), newMemoryStore(), time.Now)
	r.UseLongTimeout()
	const clients, each = 64, 20
	key, changed := enterprise(1, 1_000_000, 1_000_000), enterprise(1, 2_000_000, 2_000_000)
	var mu sync.Mutex
	remaining := map[int64]int{}
	var wg sync.WaitGroup
	for client := range clients {
		wg.Go(func() {
			for i := range each {
				as := key
				if (client+i)%10 == 0 {
					as = changed // an operator changes it meanwhile
				}
				d, err := r.Take(context.Background(), as)
				if err != nil || !d.Allowed || d.Limit != as.Limits.PerMinute {
					t.Errorf("got %+v, %v", d, err)
				}
				mu.Lock()
				remaining[as.Limits.PerMinute-d.Remaining]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for used := range int64(clients * each) {
		if n := remaining[used+1]; n != 1 {
			t.Errorf("%d requests were told that %d are used, want one", n, used+1)
		}
	}
	if s := r.Stats(); s.Calls >= clients*each || s.Shared != clients*each {
		t.Errorf("got %d calls for %d requests, want fewer", s.Calls, s.Shared)
	}
}

// TestChangedKeySharesNoCall: requests from before and after an operator changed a key are
// each decided by their own limits.
func TestChangedKeySharesNoCall(t *testing.T) {
	t.Parallel()
	clock := noon // stands still, so that nothing is a strike
	r := onRedis(t, redistest.Start(t), newMemoryStore(), &clock)
	r.UseLongTimeout()
	before, after := enterprise(1, 1, 1_000_000), enterprise(1, 1_000_000, 1_000_000)
	mustTake(t, r, before)
	var wg sync.WaitGroup
	for client := range 64 {
		key := before
		if client%2 == 0 {
			key = after
		}
		wg.Go(func() {
			for range 10 {
				if d, err := r.Take(context.Background(), key); err != nil || d.Allowed != (key == after) {
					t.Errorf("with %d a minute: got %+v, %v", key.Limits.PerMinute, d, err)
				}
			}
		})
	}
	wg.Wait()
}

// impatientStore is a store that doesn't work for a client that has disconnected.
type impatientStore struct{ *memoryStore }

func (s impatientStore) LimitState(ctx context.Context, keyID int64) (animalstore.LimitState, error) {
	if err := ctx.Err(); err != nil {
		return animalstore.LimitState{}, err
	}
	return s.memoryStore.LimitState(ctx, keyID)
}

// TestSharedCallOutlivesItsCaller: a client that disconnects doesn't fail the requests
// that share its call, not even if the call needs the store.
func TestSharedCallOutlivesItsCaller(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	r := newRedis(t, server, impatientStore{newMemoryStore()}, time.Now)
	r.UseLongTimeout()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	key := enterprise(1, 1_000_000, 1_000_000)
	mustTake(t, r, key)
	for range 20 {
		if err := server.Do("FLUSHALL").Error(); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for client := range 64 {
			wg.Go(func() {
				if client%2 == 0 {
					_, _ = r.Take(ended, key)
				} else if d, err := r.Take(context.Background(), key); err != nil || !d.Allowed {
					t.Errorf("got %+v, %v", d, err)
				}
			})
		}
		wg.Wait()
	}
}
