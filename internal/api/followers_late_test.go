package api_test

import (
	"testing"
	"time"

	"animalstore/internal/api"
)

// TestFollowersReadLate: a follower that has waited for longer than a request may take
// can still read from the database, when more has happened than is kept in memory.
func TestFollowersReadLate(t *testing.T) {
	if engine.name == sqliteEngine.name {
		t.Skip("a read of SQLite that needn't wait for its turn doesn't look at the time")
	}
	t.Parallel()
	s := start(t, func(with *setup) { with.eventsEvery = time.Hour }) // it looks when it is notified
	st := s.openStream(t, call{path: "/v1/events?after=latest&type=pet.*"})
	waiting := s.beginWaiting(t, call{path: s.latest(t, "", "&type=pet.*&wait=30")})
	time.Sleep(api.HandlerTimeout)
	engine.exec(t, s.database, `INSERT INTO events (id, type, subject_id, created_at, key_id, request_id, data)
		SELECT (SELECT coalesce(max(id), 0) FROM events) + n, 0, n, 1, 0, '', '{}' FROM generate_series(1, 5000) n`)
	s.createPet(t, "Rex")
	if page := readEventPage(t, <-waiting); len(page.events) != 20 || page.events[0].Subject != "pet/1" {
		t.Errorf("the request that waited got %q, want the first 20 events", typesOf(page.events))
	}
	if e := st.next(); e.Subject != "pet/1" {
		t.Errorf("the stream got %s %s, want the first event", e.Type, e.Subject)
	}
}
