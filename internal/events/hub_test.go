package events_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/events"
)

var errExpired = errors.New("expired")

// store is a feed in memory. Events are visible once they are published.
type store struct {
	mu        sync.Mutex
	all       []animalstore.Event
	published int64
	reads     int
	err       error
}

func (s *store) add(types ...animalstore.EventType) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range types {
		id := int64(len(s.all) + 1)
		key, request := id%3+1, fmt.Sprint("request-", id)
		s.all = append(s.all, animalstore.Event{ID: id, Type: t, Subject: animalstore.EventSubject(t.Resource(), id), Time: animalstore.AtMilli(1e12 + id), KeyID: &key, RequestID: &request, Data: json.RawMessage(fmt.Sprintf(`{"id":%d}`, id))})
	}
}

func (s *store) PublishEvents(context.Context) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.published = int64(len(s.all))
	}
	return s.published, s.err
}

func (s *store) Events(_ context.Context, q db.EventQuery) ([]animalstore.Event, int64, error) {
	if q.Before != 0 {
		panic("the hub reads forwards")
	}
	after := q.After
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	if s.err != nil {
		return nil, after, s.err
	}
	if after > s.published {
		return nil, after, errExpired
	}
	var found []animalstore.Event
	last := after
	for _, e := range s.all[after:s.published] {
		if len(found) == q.Limit || last-after == 1000 {
			break
		}
		last = e.ID
		if (len(q.Types) == 0 || slices.Contains(q.Types, e.Type)) && (q.Subject == "" || e.Subject == q.Subject) {
			found = append(found, e)
		}
	}
	return found, last, nil
}

func (s *store) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

func (s *store) countReads() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	reads := s.reads
	s.reads = 0
	return reads
}

// run starts a hub that ends with the test.
func run(t *testing.T, s events.Store) *events.Hub {
	h := events.NewHub(s, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { h.Run(ctx) })
	t.Cleanup(func() { cancel(); wg.Wait() })
	return h
}

// collect waits for n events and returns their ids.
func collect(t *testing.T, r *events.Reader, n int) (ids []int64) {
	t.Helper()
	for {
		messages, more, err := r.Read(t.Context(), 7)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range messages {
			ids = append(ids, m.ID)
		}
		if len(ids) >= n {
			return ids
		}
		if !more {
			<-r.More()
		}
	}
}

var admin = events.View{KeyID: 1, Admin: true}

// TestManyFollowersReadOnce: the database is read once, however many followers
// there are, and not at all without one.
func TestManyFollowersReadOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		h := run(t, s)
		for range 100 {
			s.add(animalstore.PetCreated)
			h.Notify()
			time.Sleep(50 * time.Millisecond)
		}
		if n, stats := s.countReads(), h.Stats(); n != 0 || stats.Newest != 100 || stats.Kept != 0 {
			t.Errorf("nobody follows: got %d reads and %+v, want the newest id alone", n, stats)
		}
		var wg sync.WaitGroup
		for range 100 {
			r := h.NewReader(100, events.Filter{}, admin)
			defer r.Close()
			wg.Go(func() {
				if ids := collect(t, r, 50); len(ids) != 50 || ids[0] != 101 || ids[49] != 150 {
					t.Errorf("got %v, want 101 to 150", ids)
				}
			})
		}
		synctest.Wait()
		for range 50 {
			s.add(animalstore.PetUpdated)
		}
		h.Notify()
		wg.Wait()
		if n := s.countReads(); n != 1 {
			t.Errorf("got %d reads of the database, want 1", n)
		}
	})
}

// TestNotifiedAtOnce: an event of this process arrives at once, an event of
// another process by the next poll.
func TestNotifiedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		h := run(t, s)
		time.Sleep(time.Second)
		r := h.NewReader(0, events.Filter{}, admin)
		defer r.Close()
		for _, test := range []struct {
			notify bool
			want   time.Duration
		}{{true, 20 * time.Millisecond}, {false, 250 * time.Millisecond}} {
			time.Sleep(1100 * time.Millisecond) // not at the time of a regular poll
			began := time.Now()
			s.add(animalstore.PetCreated)
			if test.notify {
				h.Notify()
			}
			collect(t, r, 1)
			if took := time.Since(began); took > test.want {
				t.Errorf("notified %t: got it after %v, want at most %v", test.notify, took, test.want)
			}
		}
	})
}

// TestFallingBehind: a follower that needs events no longer in memory reads
// them from the database and misses nothing.
func TestFallingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		h := run(t, s)
		synctest.Wait()
		r := h.NewReader(0, events.Filter{}, admin)
		defer r.Close()
		for range 20 {
			for range 1000 {
				s.add(animalstore.PetCreated)
			}
			h.Notify()
			time.Sleep(100 * time.Millisecond)
		}
		kept := h.Stats().Kept
		if kept > 4096 {
			t.Errorf("got %d events in memory, want at most 4096", kept)
		}
		for first := int64(20_000 - kept); first <= int64(20_000-kept)+2; first++ { // from before the oldest in memory
			next := h.NewReader(first-1, events.Filter{}, admin)
			defer next.Close()
			if ids := collect(t, next, 1); ids[0] != first {
				t.Errorf("after %d: got %d, want %d", first-1, ids[0], first)
			}
		}
		for i, id := range collect(t, r, 20_000) {
			if id != int64(i+1) {
				t.Fatalf("got %d as number %d, want every event in order", id, i+1)
			}
		}
	})
}

// TestFilters: events that don't match are skipped, in memory and in the
// database, and a reader never sees events it isn't allowed to see.
func TestFilters(t *testing.T) {
	user := events.View{KeyID: 1}
	const all = 18 // types
	for _, test := range []struct {
		name   string
		view   events.View
		filter events.Filter
		want   int
	}{
		{"everything for an admin", admin, events.Filter{}, all},
		{"everything for others", user, events.Filter{}, 8},
		{"types for others", user, events.Filter{Types: []animalstore.EventType{animalstore.PetCreated, animalstore.KeyCreated}}, 1},
		{"only types for admins", user, events.Filter{Types: []animalstore.EventType{animalstore.KeyCreated, animalstore.WebhookCreated}}, 0},
		{"a subject", admin, events.Filter{Subject: "pet/2"}, 1},
	} {
		for _, inMemory := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, in memory %t", test.name, inMemory), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &store{}
					if !inMemory {
						s.add(animalstore.EventTypes...)
					}
					h := run(t, s)
					synctest.Wait()
					r := h.NewReader(0, test.filter, test.view)
					defer r.Close()
					if inMemory {
						s.add(animalstore.EventTypes...)
						time.Sleep(time.Second)
						s.countReads()
					}
					var got []*events.Message
					for more := true; more; {
						var some []*events.Message
						var err error
						if some, more, err = r.Read(t.Context(), 3); err != nil {
							t.Fatal(err)
						}
						got = append(got, some...)
					}
					if len(got) != test.want || r.Position() != all {
						t.Errorf("got %d events and position %d, want %d and %d", len(got), r.Position(), test.want, all)
					}
					if n := s.countReads(); inMemory && n != 0 {
						t.Errorf("got %d reads of the database, want none", n)
					}
				})
			})
		}
	}
}

// TestViews: a reader sees the author of its own changes, and an admin sees the
// author of all changes.
func TestViews(t *testing.T) {
	key, request := int64(7), "r"
	e := animalstore.Event{ID: 5, Type: animalstore.PetCreated, Time: animalstore.AtMilli(1e12), Subject: "pet/1", KeyID: &key, RequestID: &request, Data: json.RawMessage(`{"name":"<&>"}`)}
	m := events.NewMessage(e)
	for view, full := range map[events.View]bool{{KeyID: 7}: true, {KeyID: 8}: false, {KeyID: 8, Admin: true}: true} {
		var got animalstore.Event
		if err := json.Unmarshal(m.JSON(view), &got); err != nil {
			t.Fatal(err)
		}
		if (got.KeyID != nil) != full || (got.RequestID != nil) != full || got.Subject != e.Subject || string(got.Data) != string(e.Data) || !got.Time.Equal(e.Time.Time) {
			t.Errorf("%+v: got %s, want the author shown: %t", view, m.JSON(view), full)
		}
		if frame := string(m.Frame(view)); frame != "id: 5\nevent: pet.created\ndata: "+string(m.JSON(view))+"\n\n" || strings.Count(frame, "\n") != 4 {
			t.Errorf("got frame %q", frame)
		}
	}
}

// TestStoreFails: followers wait until the store works again and miss nothing.
func TestStoreFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		h := run(t, s)
		synctest.Wait()
		r := h.NewReader(0, events.Filter{}, admin)
		defer r.Close()
		s.fail(errors.New("gone"))
		s.add(animalstore.PetCreated)
		time.Sleep(10 * time.Second)
		if age := h.Stats().Age; age < 9*time.Second {
			t.Errorf("got a lag of %v, want the length of the outage", age)
		}
		s.fail(nil)
		if ids := collect(t, r, 1); ids[0] != 1 {
			t.Errorf("got %v, want 1", ids)
		}
	})
}

// TestStoreGoesBack: after a store is restored from a backup, a follower learns
// that its position doesn't exist.
func TestStoreGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		s.add(animalstore.EventTypes...)
		h := run(t, s)
		synctest.Wait()
		r := h.NewReader(16, events.Filter{}, admin)
		defer r.Close()
		s.mu.Lock()
		s.all, s.published = s.all[:10], 10
		s.mu.Unlock()
		<-r.More()
		if _, _, err := r.Read(t.Context(), 5); !errors.Is(err, errExpired) {
			t.Errorf("got %v, want the error of the store", err)
		}
	})
}

// TestOnPoll: the callback is called for new events of any process and after each
// Notify.
func TestOnPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		h := run(t, s)
		synctest.Wait() // the first poll
		called := 0
		h.OnPoll(func() { called++ })
		expect := func(when string, want int) {
			t.Helper()
			time.Sleep(time.Second)
			synctest.Wait()
			if called != want {
				t.Errorf("%s: called %d times, want %d", when, called, want)
			}
		}
		expect("nothing happened", 0)
		s.add(animalstore.PetCreated)
		expect("another process wrote", 1)
		h.Notify()
		expect("notified", 2)
	})
}
