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
	names     map[int64]string // of keys
	named     int              // how often names were read
	err       error
}

func (s *store) KeyNames(_ context.Context, ids []int64) (map[int64]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.named++
	found := map[int64]string{}
	for _, id := range ids {
		if name, ok := s.names[id]; ok {
			found[id] = name
		}
	}
	return found, s.err
}

func (s *store) rename(id int64, name string) (named int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names = map[int64]string{id: name}
	return s.named
}

func (s *store) add(types ...animalstore.EventType) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range types {
		id := int64(len(s.all) + 1)
		key, request := id%3+1, fmt.Sprint("request-", id)
		s.all = append(s.all, animalstore.Event{ID: id, Type: t, Subject: animalstore.EventSubject(t.Resource(), id), Time: animalstore.AtMilli(1e12 + id), KeyID: &key, RequestID: &request, Data: json.RawMessage(fmt.Sprintf(`{"id":%d,"petId":2}`, id))})
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
		if (len(q.Types) == 0 || slices.Contains(q.Types, e.Type)) && (q.Subject == "" || e.Subject == q.Subject) && (q.PetID == 0 || e.PetID() == q.PetID) {
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

var admin = events.View{KeyID: 1, Permissions: animalstore.Read | animalstore.Admin}

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
			r := h.NewReader(100, animalstore.EventQuery{}, admin)
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
		r := h.NewReader(0, animalstore.EventQuery{}, admin)
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

// TestCatchingUp: a follower that has events left to read doesn't pause for the others.
func TestCatchingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		h := run(t, s)
		for range 1000 {
			s.add(animalstore.PetCreated)
			defer h.NewReader(1000, animalstore.EventQuery{}, admin).Close()
		}
		h.Notify()
		time.Sleep(time.Second)
		r := h.NewReader(0, animalstore.EventQuery{}, admin)
		defer r.Close()
		began := time.Now()
		for r.Position() < 1000 {
			<-r.More()
			if _, _, err := r.Read(t.Context(), 7); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("reading 1000 events took %v, want no pauses", took)
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
		r := h.NewReader(0, animalstore.EventQuery{}, admin)
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
			next := h.NewReader(first-1, animalstore.EventQuery{}, admin)
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
	user := events.View{KeyID: 1, Permissions: animalstore.Read}
	const all = 18 // types
	for _, test := range []struct {
		name   string
		view   events.View
		filter animalstore.EventQuery
		want   int
	}{
		{"everything for an admin", admin, animalstore.EventQuery{}, all},
		{"everything for others", user, animalstore.EventQuery{}, 8},
		{"pets for a key that reads pets", events.View{KeyID: 1, Permissions: animalstore.PetsWrite}, animalstore.EventQuery{}, 6},
		{"orders for a key that reads orders", events.View{KeyID: 1, Permissions: animalstore.OrdersRead}, animalstore.EventQuery{}, 2},
		{"only pets for a key that reads orders", events.View{KeyID: 1, Permissions: animalstore.OrdersRead}, animalstore.EventQuery{Types: "pet.created"}, 0},
		{"keys, but not pets, for an admin that reads orders", events.View{KeyID: 1, Permissions: animalstore.OrdersRead | animalstore.Admin}, animalstore.EventQuery{}, 12},
		{"types for others", user, animalstore.EventQuery{Types: "pet.created,key.created"}, 1},
		{"only types for admins", user, animalstore.EventQuery{Types: "key.created,webhook.created"}, 0},
		{"a subject", admin, animalstore.EventQuery{Subject: "pet/2"}, 1},
		{"a pet with its photos and orders", user, animalstore.EventQuery{PetID: 2}, 5},
		{"a pet's orders", user, animalstore.EventQuery{PetID: 2, Types: "order.created,key.created"}, 1},
		{"another pet", user, animalstore.EventQuery{PetID: 3}, 1},
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
					var got []events.Message
					for more := true; more; {
						var some []events.Message
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

// TestViews: a reader sees the request of its own changes, and an admin that of all; with
// write, it also sees which key made a change. The name of a key is at most 10 s old.
func TestViews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		h := run(t, s)
		s.rename(2, "till <&>")
		s.add(animalstore.PetCreated) // by key 2
		s.add(animalstore.PetUpdated) // by key 3, which doesn't exist
		event := s.all[0]
		time.Sleep(time.Second) // until they are published
		read := func(view events.View, inMemory bool) (e, unnamed animalstore.Event) {
			t.Helper()
			r := h.NewReader(0, animalstore.EventQuery{}, view)
			defer r.Close()
			if inMemory {
				time.Sleep(300 * time.Millisecond) // until the next poll
			}
			messages, _, err := r.Read(t.Context(), 5)
			if err != nil || len(messages) != 2 {
				t.Fatalf("got %d events, %v", len(messages), err)
			}
			m := messages[0]
			if err := errors.Join(json.Unmarshal(m.JSON(), &e), json.Unmarshal(messages[1].JSON(), &unnamed)); err != nil {
				t.Fatal(err)
			}
			if frame := string(m.Frame()); frame != "id: 1\nevent: pet.created\ndata: "+string(m.JSON())+"\n\n" || strings.Count(frame, "\n") != 4 {
				t.Errorf("got frame %q", frame)
			}
			return e, unnamed
		}
		for _, inMemory := range []bool{false, true} {
			for view, want := range map[events.View]struct{ key, request bool }{
				{KeyID: 2, Permissions: animalstore.Read}:                                {true, true},
				{KeyID: 8, Permissions: animalstore.Read}:                                {false, false},
				{KeyID: 8, Permissions: animalstore.Read | animalstore.Write}:            {true, false},
				{KeyID: 8, Permissions: animalstore.PetsWrite | animalstore.OrdersWrite}: {false, false},
				{KeyID: 8, Permissions: animalstore.Read | animalstore.Admin}:            {true, true},
			} {
				got, unnamed := read(view, inMemory)
				if (got.KeyID != nil) != want.key || (got.KeyName != nil) != want.key || want.key && *got.KeyName != "till <&>" || (got.RequestID != nil) != want.request ||
					unnamed.KeyName != nil || got.Subject != event.Subject || string(got.Data) != string(event.Data) || !got.Time.Equal(event.Time.Time) {
					t.Errorf("%+v, in memory %t: got %+v, want the key shown: %t, the request: %t", view, inMemory, got, want.key, want.request)
				}
			}
		}
		before := s.rename(2, "counter")
		for range 10 {
			read(admin, true)
		}
		time.Sleep(8 * time.Second)
		if got, _ := read(admin, true); got.KeyName == nil || *got.KeyName != "counter" {
			t.Errorf("10 s after a key was renamed, its name is %v", got.KeyName)
		}
		if reads := s.rename(2, "") - before; reads > 2 {
			t.Errorf("got %d reads of names in 11 s, want at most 2", reads)
		}
	})
}

// TestStoreFails: followers wait until the store works again and miss nothing.
func TestStoreFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		h := run(t, s)
		synctest.Wait()
		r := h.NewReader(0, animalstore.EventQuery{}, admin)
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
		r := h.NewReader(16, animalstore.EventQuery{}, admin)
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
