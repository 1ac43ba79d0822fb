package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"unique"

	"animalstore"
	goclient "animalstore/client"
	"animalstore/internal/testenv"
)

// shownEvent is what a reader of the feed was shown under an id. It is interned, because all
// readers should be shown the same.
type shownEvent struct{ text unique.Handle[string] }

func shownAs(e animalstore.Event) shownEvent {
	return shownEvent{unique.Make(fmt.Sprintf("%s %s %s", e.Type, e.Subject, e.Data))}
}

func (e shownEvent) String() string { return e.text.Value() }

func (e shownEvent) item() (subject, data string) {
	_, rest, _ := strings.Cut(e.String(), " ")
	subject, data, _ = strings.Cut(rest, " ")
	return subject, data
}

// change is a change that was acknowledged, by the event that it must have. The name is "" if
// it isn't known.
type change struct {
	event         animalstore.EventType
	subject, name string
}

// changes are what clients of a store sent and what was acknowledged.
type changes struct {
	mu           sync.Mutex
	sent         map[string]bool // names of pets
	acknowledged []change        // those not yet found in the feed
}

// send must be called before a pet's name is sent.
func (c *changes) send(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sent == nil {
		c.sent = map[string]bool{}
	}
	c.sent[name] = true
}

// acknowledge records a change that was acknowledged if err is nil, and returns err.
func (c *changes) acknowledge(err error, event animalstore.EventType, id int64, name string) error {
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.acknowledged = append(c.acknowledged, change{event, animalstore.EventSubject(event.Resource(), id), name})
	}
	return err
}

func (c *changes) wasSent(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sent[name]
}

// take returns what was acknowledged since the last call.
func (c *changes) take() []change {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.acknowledged
	c.acknowledged = nil
	return taken
}

// history compares the feed of events, as each instance returns it, with what followers were
// shown and with what clients were told about their changes.
type history struct {
	instances []*goclient.Client
	client    *client // of the first instance
	followers *followers
	changes   *changes

	feed  []shownEvent    // the event with id n is at n-1
	found map[change]bool // the changes in it, also without their name
	names map[string]bool // of the pets that were created in it
}

func newHistory(t *testing.T, instances []*instance, key string, f *followers, c *changes) *history {
	h := &history{followers: f, changes: c, found: map[change]bool{}, names: map[string]bool{}}
	h.client = newClient(t, instances[0].server, key)
	for _, in := range instances {
		h.instances = append(h.instances, newGoClient(t, in.url, key))
	}
	return h
}

const (
	// overlap is how many events that were compared before are compared again: those that a
	// failover would lose are among the last.
	overlap = 1000
	// resumes is how often the feed is read from a random id in each check.
	resumes = 4
)

// check compares the events so far. Clients may continue.
func (h *history) check(t *testing.T) {
	t.Helper()
	h.compare(t, int64(max(0, len(h.feed)-overlap)))
}

// finish stops the followers, compares all events, and what the followers made of them with
// the store. Nothing may change any more.
func (h *history) finish(t *testing.T) {
	t.Helper()
	h.compare(t, 0)
	h.followers.stop()
	h.followers.compare(t, h.client)
}

// compare compares the events after an id. It ends the test if something is wrong, because
// everything later would be too.
func (h *history) compare(t *testing.T, after int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Deadline)
	defer cancel()
	acknowledged := h.changes.take() // their events are in the feed from now on
	newest, err := h.instances[0].LatestEventID(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if newest < int64(len(h.feed)) {
		t.Fatalf("the newest event is %d, but %d was there before", newest, len(h.feed))
	}
	h.extend(t, h.read(ctx, t, 0, int64(len(h.feed)), newest))
	for i := range h.instances {
		h.wantSuffix(ctx, t, i, after, newest)
	}
	for range resumes {
		i, from := rand.IntN(len(h.instances)), rand.Int64N(newest+1)
		h.wantSuffix(ctx, t, i, from, min(newest, from+overlap))
	}
	for _, f := range h.followers.copies {
		h.wantShown(t, f, after)
	}
	for _, c := range acknowledged {
		if !h.found[c] {
			t.Errorf("acknowledged %s %s %q, but there is no such event", c.event, c.subject, c.name)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
}

// read returns the events after an id, up to another, as an instance lists them.
func (h *history) read(ctx context.Context, t *testing.T, instance int, after, to int64) (events []animalstore.Event) {
	t.Helper()
	last := after
	if last == to {
		return nil
	}
	for e, err := range h.instances[instance].ListEvents(ctx, animalstore.EventQuery{After: &after}) {
		if err != nil {
			t.Fatalf("instance %d: read the events after %d: %v", instance, last, err)
		}
		if e.ID != last+1 {
			t.Fatalf("instance %d: event %d after %d", instance, e.ID, last)
		}
		events, last = append(events, e), e.ID
		if last == to {
			return events
		}
	}
	t.Fatalf("instance %d: the feed ends with event %d, want %d", instance, last, to)
	return nil
}

// extend adds events to the feed. They must be of changes that clients sent, each once.
func (h *history) extend(t *testing.T, events []animalstore.Event) {
	t.Helper()
	happenOnce := []animalstore.EventType{
		animalstore.PetCreated, animalstore.PetDeleted, animalstore.OrderCreated,
		animalstore.KeyCreated, animalstore.KeyRevoked,
	}
	for _, e := range events {
		var data struct{ Name string }
		if err := json.Unmarshal(e.Data, &data); err != nil {
			t.Fatalf("event %d: %v", e.ID, err)
		}
		if e.Type.Resource() == "pet" && !h.changes.wasSent(data.Name) {
			t.Errorf("event %d is %s, which nobody sent", e.ID, shownAs(e))
		}
		if slices.Contains(happenOnce, e.Type) && h.found[change{e.Type, e.Subject, ""}] {
			t.Errorf("event %d is the second %s of %s", e.ID, e.Type, e.Subject)
		}
		if e.Type == animalstore.PetCreated {
			if h.names[data.Name] {
				t.Errorf("event %d is the second pet.created with the name %q", e.ID, data.Name)
			}
			h.names[data.Name] = true
		}
		h.found[change{e.Type, e.Subject, ""}] = true
		h.found[change{e.Type, e.Subject, data.Name}] = true
		h.feed = append(h.feed, shownAs(e))
	}
}

// wantSuffix fails the test if an instance lists other events after an id than are in the feed.
func (h *history) wantSuffix(ctx context.Context, t *testing.T, instance int, after, to int64) {
	t.Helper()
	different := 0
	for _, e := range h.read(ctx, t, instance, after, to) {
		if want := h.feed[e.ID-1]; shownAs(e) != want {
			if different++; different <= 3 {
				t.Errorf("instance %d lists event %d %s, it was %s", instance, e.ID, shownAs(e), want)
			}
		}
	}
}

// wantShown waits until a follower has every event, and fails the test if it was shown other
// events than are in the feed.
func (h *history) wantShown(t *testing.T, f *storeCopy, after int64) {
	t.Helper()
	var shown []shownEvent
	var wrong []string
	testenv.Eventually(t, f.name+" has every event", func() bool {
		shown, wrong = f.soFar()
		return len(shown) >= len(h.feed) || len(wrong) > 0
	})
	for _, w := range wrong {
		t.Errorf("%s: %s", f.name, w)
	}
	different := 0
	for id := after + 1; id <= int64(min(len(shown), len(h.feed))); id++ {
		if got, now := shown[id-1], h.feed[id-1]; got != now {
			if different++; different <= 3 {
				t.Errorf("%s was shown event %d %s, the feed now has %s", f.name, id, got, now)
			}
		}
	}
}
