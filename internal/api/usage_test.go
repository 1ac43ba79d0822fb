package api_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"animalstore"
)

// hour is what became of a key's requests in one.
type hour struct {
	Hour              string
	Admitted, Refused int64
}

// TestUsage: usage by hour, newest first, including the request that asks for it. Reading it
// writes nothing. The last use of a key is shown with it, also if it was refused.
func TestUsage(t *testing.T) {
	s := start(t)
	secret, id := s.with(t, readWrite, func(k *animalstore.NewKey) { k.Limits = animalstore.Limits{PerMinute: 5, PerDay: 1_000} })
	send := func(n int) {
		t.Helper()
		for range n {
			s.do(t, call{path: "/v1/pets", key: secret})
		}
	}
	s.clock.Set(time.Date(2026, 11, 15, 12, 59, 59, 999e6, time.UTC))
	send(7) // of which two are refused
	s.clock.Set(time.Date(2026, 11, 15, 13, 0, 0, 0, time.UTC))
	send(1) // still the same minute: refused
	if err := s.server.Save(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.asAdmin(t, "GET", keyPath(id), "").key(t).LastUsedAt; got != "2026-11-15T13:00:00.000Z" {
		t.Errorf("got last use %q, want that of the refused request", got)
	}
	s.clock.Set(time.Date(2026, 11, 15, 15, 0, 0, 0, time.UTC))
	s.do(t, call{path: "/v1/nothing", key: secret}).want(t, http.StatusNotFound, animalstore.RouteNotFound)
	want := []hour{{"2026-11-15T15:00:00.000Z", 2, 0}, {"2026-11-15T13:00:00.000Z", 0, 1}, {"2026-11-15T12:00:00.000Z", 5, 2}}
	s.db.called()
	got := s.do(t, call{path: "/v1/usage", key: secret})
	if !slices.Equal(read[[]hour](t, got, http.StatusOK), want) {
		t.Errorf("got %v, want %v", read[[]hour](t, got, http.StatusOK), want)
	}
	if got := got.header.Get("Cache-Control"); got != "no-store" {
		t.Errorf("Cache-Control: got %q, want no-store", got)
	}
	if n := s.db.called()["SaveUsage"]; n != 0 {
		t.Errorf("usage was saved %d times, want never", n)
	}
	t.Run("as an admin sees it", func(t *testing.T) {
		if got := read[[]hour](t, s.asAdmin(t, "GET", keyPath(id, "/usage"), ""), http.StatusOK); !slices.Equal(got, want) {
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
			if got := read[[]hour](t, s.asAdmin(t, "GET", keyPath(id, "/usage?"+query), ""), http.StatusOK); !slices.Equal(got, want[:n]) {
				t.Errorf("%s: got %v, want %v", query, got, want[:n])
			}
		}
		s.clock.Set(time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC))
		if got := read[[]hour](t, s.asAdmin(t, "GET", keyPath(id, "/usage"), ""), http.StatusOK); !slices.Equal(got, want[:2]) {
			t.Errorf("after a day: got %v, want %v", got, want[:2])
		}
	})
}
