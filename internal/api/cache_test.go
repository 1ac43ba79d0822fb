package api_test

import "testing"

// TestPageCache: a first page is read from the database once, and every time
// where the cache is off.
func TestPageCache(t *testing.T) {
	for _, off := range []bool{false, true} {
		s := start(t, func(with *setup) { with.noPageCache = off })
		s.db.called()
		for range 3 {
			s.do(t, call{path: "/v1/pets"}).want(t, 200, "")
		}
		want := 1
		if off || engine.name == postgresEngine.name { // which others write to, too
			want = 3
		}
		if got := s.db.called()["Pets"]; got != want {
			t.Errorf("cache off %t: got %d reads, want %d", off, got, want)
		}
	}
}
