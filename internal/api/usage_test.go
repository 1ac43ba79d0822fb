package api_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"animalstore"
)

// hour is what became of a key's requests in one.
type hour struct {
	Hour              string
	Admitted, Refused int64
}

func (a response) hours(t testing.TB) []hour {
	t.Helper()
	var hours []hour
	if err := json.Unmarshal(a.body, &hours); err != nil || a.status != http.StatusOK {
		t.Fatalf("got %v, want hours (%v)", a, err)
	}
	return hours
}

// TestUsage: usage by hour, newest first, including the request that asks for it.
func TestUsage(t *testing.T) {
	s := start(t)
	secret, id := s.with(t, readWrite, func(k *animalstore.NewKey) { k.Limits = animalstore.Limits{PerMinute: 5, PerDay: 1_000} })
	send := func(n int) {
		t.Helper()
		for range n {
			s.do(t, call{path: "/v1/pets", key: secret})
		}
	}
	s.clock.set(time.Date(2026, 11, 15, 12, 59, 59, 999e6, time.UTC))
	send(7) // of which two are refused
	s.clock.set(time.Date(2026, 11, 15, 13, 0, 0, 0, time.UTC))
	send(1) // still the same minute: refused
	s.clock.set(time.Date(2026, 11, 15, 15, 0, 0, 0, time.UTC))
	s.do(t, call{path: "/v1/nothing", key: secret}).want(t, http.StatusNotFound, animalstore.RouteNotFound)
	want := []hour{{"2026-11-15T15:00:00.000Z", 2, 0}, {"2026-11-15T13:00:00.000Z", 0, 1}, {"2026-11-15T12:00:00.000Z", 5, 2}}
	got := s.do(t, call{path: "/v1/usage", key: secret})
	if !slices.Equal(got.hours(t), want) {
		t.Errorf("got %v, want %v", got.hours(t), want)
	}
	if got := got.header.Get("Cache-Control"); got != "no-store" {
		t.Errorf("Cache-Control: got %q, want no-store", got)
	}
	t.Run("as an admin sees it", func(t *testing.T) {
		if got := s.asAdmin(t, "GET", keyPath(id, "/usage"), "").hours(t); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
	t.Run("of a key without any", func(t *testing.T) {
		_, id := s.with(t, readWrite, nil)
		if got := s.asAdmin(t, "GET", keyPath(id, "/usage"), ""); string(got.body) != "[]\n" {
			t.Errorf("got %s, want []", got.body)
		}
	})
	t.Run("hours", func(t *testing.T) {
		for query, n := range map[string]int{"hours=1": 1, "hours=2": 1, "hours=3": 2, "hours=4": 3, "hours=2160": 3, "": 3, "x=y": 3, "hours=%34": 3} {
			if got := s.asAdmin(t, "GET", keyPath(id, "/usage?"+query), "").hours(t); !slices.Equal(got, want[:n]) {
				t.Errorf("%s: got %v, want %v", query, got, want[:n])
			}
		}
		s.clock.set(time.Date(2026, 11, 16, 11, 59, 59, 0, time.UTC))
		if got := s.asAdmin(t, "GET", keyPath(id, "/usage"), "").hours(t); !slices.Equal(got, want) {
			t.Errorf("in the 24th hour: got %v, want %v", got, want)
		}
		s.clock.set(time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC))
		if got := s.asAdmin(t, "GET", keyPath(id, "/usage"), "").hours(t); !slices.Equal(got, want[:2]) {
			t.Errorf("after it: got %v, want %v", got, want[:2])
		}
	})
	t.Run("hours that are none", func(t *testing.T) {
		for _, query := range []string{"hours=0", "hours=2161", "hours=-1", "hours=", "hours", "hours=1.0", "hours=01", "hours=%2B1", "hours=abc", "hours=1&hours=1", "hours=99999999999999999999", "%zz"} {
			for path, key := range map[string]string{"/v1/usage?": s.owner, keyPath(id, "/usage?"): s.admin} {
				got := s.do(t, call{path: path + query, key: key, bad: true})
				got.want(t, http.StatusBadRequest, animalstore.InvalidParameter)
				if query != "%zz" {
					got.wantMessage(t, "hours must be an integer from 1 to 2160")
				}
			}
		}
	})
}

// TestUsageIsDropped: usage older than 90 days is dropped, and all younger usage is kept.
func TestUsageIsDropped(t *testing.T) {
	s := start(t)
	_, id := s.with(t, readWrite, nil)
	now := animalstore.At(s.clock.Now())
	old := animalstore.At(now.Add(-animalstore.UsageKept - time.Hour))
	young := animalstore.At(now.Add(-animalstore.UsageKept + time.Hour))
	if err := s.db.SaveUsage(t.Context(), []animalstore.Usage{
		{KeyID: id, Hour: old, Admitted: 1}, {KeyID: id, Hour: young, Admitted: 2}, {KeyID: id, Hour: now, Refused: 3},
	}); err != nil {
		t.Fatal(err)
	}
	if n, err := s.db.DropUsage(t.Context(), animalstore.At(now.Add(-animalstore.UsageKept)), 100); n != 1 || err != nil {
		t.Errorf("got %d dropped, %v, want 1", n, err)
	}
	want := []hour{{now.String(), 0, 3}, {young.String(), 2, 0}}
	if got := s.asAdmin(t, "GET", keyPath(id, "/usage?hours=2160"), "").hours(t); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	all, err := s.db.Usage(t.Context(), id, animalstore.Time{})
	if len(all) != 2 || err != nil {
		t.Errorf("got %v, %v in the database, want two hours", all, err)
	}
}

// TestUsageAddsUp: whatever many clients at once count, over hours and saves in
// between, is what the store has in the end.
func TestUsageAddsUp(t *testing.T) {
	t.Parallel()
	s := start(t)
	const clients, rounds = 4, 6
	type count struct{ admitted, refused int64 }
	type client struct {
		secret string
		id     int64
		count
	}
	all := make([]client, clients)
	for i := range all {
		secret, id := s.with(t, animalstore.Read, func(k *animalstore.NewKey) {
			k.Limits = animalstore.Limits{PerMinute: int64(10 + 5*i), PerDay: 100}
		})
		all[i] = client{secret: secret, id: id}
	}
	for range rounds {
		var group sync.WaitGroup
		var mu sync.Mutex
		for i := range all {
			for j := range 25 {
				group.Go(func() {
					path := []string{"/v1/pets", "/v1/pets/99", "/v1/nothing", "/v1/keys", "/v1/usage"}[j%5]
					got, err := s.send(t.Context(), call{path: path, key: all[i].secret})
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					defer mu.Unlock()
					if got.status == http.StatusTooManyRequests {
						all[i].refused++
					} else {
						all[i].admitted++
					}
				})
			}
		}
		group.Wait()
		s.clock.advance(37 * time.Minute)
	}
	for i, c := range all {
		var got count
		for _, h := range s.asAdmin(t, "GET", keyPath(c.id, "/usage?hours=100"), "").hours(t) {
			got.admitted += h.Admitted
			got.refused += h.Refused
		}
		if got != c.count || c.admitted+c.refused != 25*rounds || c.refused == 0 && i == 0 {
			t.Errorf("client %d: got %+v, want what it counted, %+v", i, got, c.count)
		}
		if c.admitted > 100 {
			t.Errorf("client %d: got %d admitted in a day, want at most 100", i, c.admitted)
		}
	}
}
