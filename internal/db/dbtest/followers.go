package dbtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/testenv"
)

// followersSeeEverything: see [FollowWriters].
func followersSeeEverything(t *testing.T, d db.DB) {
	if err := FollowWriters(t, testenv.Count(40, 2000), d); err != nil {
		t.Error(err)
	}
}

// FollowWriters lets many callers change a store, each through one of the given
// databases, while others follow its events. All databases are of the same store. It
// returns an error if a follower didn't see every event once, in the same order as the
// others, or if the events don't add up to what is stored.
func FollowWriters(t *testing.T, each int, all ...db.DB) error {
	t.Helper()
	const writers, followers = 16, 8
	ids, seed := &pool{}, rand.Uint64()
	writing, ended := context.WithCancel(t.Context())
	defer ended()
	seen := make([][]animalstore.Event, followers)
	failed := make([]error, followers)
	var wg sync.WaitGroup
	for i := range followers {
		wg.Go(func() { seen[i], failed[i] = follow(t.Context(), writing, all[i%len(all)], 1+i*7) })
	}
	var writeErrs [writers]error
	var working sync.WaitGroup
	for i := range writers {
		working.Go(func() { writeErrs[i] = writeRandomly(t.Context(), all[i%len(all)], ids, seed, i, each) })
	}
	working.Wait()
	ended()
	wg.Wait()
	if err := errors.Join(append(writeErrs[:], failed...)...); err != nil {
		return err
	}
	complete, _, err := all[0].Events(t.Context(), db.EventQuery{Limit: 1 << 20})
	if err != nil {
		return err
	}
	for i := range seen {
		if err := sameEvents(seen[i], complete); err != nil {
			return fmt.Errorf("follower %d of seed %d: %w", i, seed, err)
		}
	}
	return compareCopy(t.Context(), all[0], complete)
}

// writeRandomly makes changes of every kind.
func writeRandomly(ctx context.Context, d db.DB, ids *pool, seed uint64, caller, each int) error {
	draw := rand.New(rand.NewPCG(seed, uint64(caller))).IntN
	for range each {
		got, err := runOperation(ctx, d, ids.operation(draw))
		if err != nil {
			return err
		}
		ids.learn(got)
	}
	return nil
}

// follow returns all events, from the first until writing has ended and no more come.
func follow(ctx, writing context.Context, d db.DB, limit int) (seen []animalstore.Event, err error) {
	last := int64(0)
	for {
		ended := writing.Err() != nil // before reading
		newest, err := d.PublishEvents(ctx)
		if err != nil {
			return nil, err
		}
		events, next, err := d.Events(ctx, db.EventQuery{After: last, Limit: limit})
		if err != nil {
			return nil, err
		}
		for _, e := range events {
			if e.ID <= last || e.ID > next {
				return nil, fmt.Errorf("event %d came after %d, with %d as the last", e.ID, last, next)
			}
		}
		seen, last = append(seen, events...), next
		if ended && len(events) == 0 && last >= newest {
			return seen, nil
		}
	}
}

func sameEvents(got, want []animalstore.Event) error {
	for i := range want {
		if i >= len(got) || got[i].ID != want[i].ID || string(got[i].Data) != string(want[i].Data) || got[i].Type != want[i].Type {
			return fmt.Errorf("got %d events that differ from all %d at number %d, which is %s", len(got), len(want), i, brief(want[i]))
		}
	}
	if len(got) > len(want) {
		return fmt.Errorf("got %d of %d events", len(got), len(want))
	}
	return nil
}

func brief(e animalstore.Event) string {
	return fmt.Sprintf("%d %s of %s: %s", e.ID, e.Type, e.Subject, e.Data)
}

// compareCopy builds a copy from events alone. Each event must fit the copy, and in the
// end the copy must equal what is stored.
func compareCopy(ctx context.Context, d db.DB, events []animalstore.Event) error {
	copied := map[string]string{}
	for _, e := range events {
		before, exists := copied[e.Subject]
		switch created := e.Type == animalstore.PetCreated || e.Type == animalstore.OrderCreated; {
		case created && exists, !created && !exists && e.Type != animalstore.CategoryUpdated:
			return fmt.Errorf("event %s doesn't fit %q", brief(e), before)
		case e.Type == animalstore.PetDeleted:
			if before != string(e.Data) {
				return fmt.Errorf("event %s doesn't fit %q", brief(e), before)
			}
			delete(copied, e.Subject)
			continue
		case exists && before == string(e.Data):
			return fmt.Errorf("event %s changes nothing", brief(e))
		}
		copied[e.Subject] = string(e.Data)
	}
	stored, err := resources(ctx, d)
	if err != nil {
		return err
	}
	for subject, want := range stored {
		if copied[subject] != want {
			return fmt.Errorf("the copy of %s is %s, want %s", subject, copied[subject], want)
		}
	}
	if len(copied) != len(stored) {
		return fmt.Errorf("the copy has %d resources, want %d", len(copied), len(stored))
	}
	return nil
}

// resources returns everything in a store that has events, as JSON by subject.
func resources(ctx context.Context, d db.DB) (map[string]string, error) {
	stored := map[string]string{}
	pets, err := d.Pets(ctx, animalstore.PetQuery{}, db.Page{Limit: 1 << 20})
	for _, p := range pets {
		stored[animalstore.EventSubject("pet", p.ID)] = jsonOf(p)
	}
	orders, err2 := d.Orders(ctx, animalstore.OrderQuery{}, db.Page{Limit: 1 << 20})
	for _, o := range orders {
		stored[animalstore.EventSubject("order", o.ID)] = jsonOf(o)
	}
	categories, err3 := d.Categories(ctx, db.CategoryQuery{Limit: 1 << 20})
	for _, c := range categories {
		stored[animalstore.EventSubject("category", c.ID)] = jsonOf(c)
	}
	return stored, errors.Join(err, err2, err3)
}

// jsonOf returns the JSON of v, whose names must not contain characters that
// encoding/json escapes.
func jsonOf(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// consecutive fails the test unless the events have consecutive ids after the given
// one.
func consecutive(t *testing.T, after int64, events []animalstore.Event) {
	t.Helper()
	for i, e := range events {
		if e.ID != after+int64(i)+1 {
			t.Fatalf("event number %d has id %d, want %d", i, e.ID, after+int64(i)+1)
		}
	}
}

// types returns the types and subjects of events.
func types(events []animalstore.Event) []string {
	all := make([]string, len(events))
	for i, e := range events {
		all[i] = string(e.Type) + " " + e.Subject
	}
	return slices.Clip(all)
}
