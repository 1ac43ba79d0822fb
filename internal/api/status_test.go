package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"time"

	"animalstore"
)

func (s *service) status(t *testing.T) animalstore.Status {
	t.Helper()
	return read[animalstore.Status](t, s.asAdmin(t, "GET", "/v1/status", ""), http.StatusOK)
}

// TestStatus: the status names the server and counts its requests by minute and outcome,
// those that were refused for lack of a key included.
func TestStatus(t *testing.T) {
	s := start(t)
	s.add(t, animalstore.NewPet{Name: "Rex"})
	s.do(t, call{path: "/v1/pets"})
	s.do(t, call{path: "/v1/pets"})
	s.do(t, call{path: "/v1/nothing"})
	s.do(t, call{path: "/v1/pets", key: noKey})
	limited := s.limitedKey(t, 1, 1)
	for range 3 {
		s.do(t, call{path: "/v1/pets", key: limited})
	}
	s.db.arm("Pets", func(context.Context) error { return errors.New("broken") })
	s.do(t, call{path: "/v1/pets?limit=7"})
	s.db.arm("Pets", nil)
	s.do(t, call{path: "/livez", key: noKey}) // isn't one of the API
	s.clock.Advance(90 * time.Second)
	got := s.status(t)

	want := animalstore.Status{
		Deployment: animalstore.Production, Engine: engine.name,
		UptimeSeconds: 90, SizeBytes: got.SizeBytes, CacheHits: got.CacheHits, CacheMisses: got.CacheMisses, WriteQueue: got.WriteQueue,
		Requests: got.Requests,
	}
	if gotText, wantText := asJSON(t, got), asJSON(t, want); gotText != wantText || got.SizeBytes < 1<<10 {
		t.Errorf("got  %s\nwant %s", gotText, wantText)
	}
	if engine.name == sqliteEngine.name && (got.CacheHits < 1 || got.CacheMisses < 1) {
		t.Errorf("got %d hits and %d misses of the cache, want at least one of each", got.CacheHits, got.CacheMisses)
	}
	begun := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	if n := len(got.Requests); n != 60 {
		t.Fatalf("got %d minutes, want 60", n)
	}
	for i, minute := range got.Requests {
		want := animalstore.RequestMinute{Minute: animalstore.At(begun.Add(time.Duration(i-58) * time.Minute))}
		if i == 58 {
			want.Served, want.Rejected, want.Limited, want.Failed = 3, 2, 2, 1
		}
		if minute != want {
			t.Errorf("minute %d: got %+v, want %+v", i, minute, want)
		}
	}
	s.clock.Set(begun.Add(time.Hour)) // the minute whose counts were those of the first requests
	s.do(t, call{path: "/v1/pets"})
	if all := s.status(t).Requests; all[59] != (animalstore.RequestMinute{Minute: animalstore.At(begun.Add(time.Hour)), Served: 1}) {
		t.Errorf("an hour after the first requests: got %+v, want one", all[59])
	}
	s.clock.Advance(2 * time.Hour)
	for i, minute := range s.status(t).Requests {
		if minute.Served+minute.Rejected+minute.Limited+minute.Failed != 0 {
			t.Errorf("two hours later, minute %d: got %+v, want no requests", i, minute)
		}
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
