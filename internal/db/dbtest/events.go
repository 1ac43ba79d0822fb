package dbtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
)

// eventLog reads the events of a store step by step.
type eventLog struct {
	d    db.DB
	last int64
}

// mustPublish publishes all events and returns the newest id.
func mustPublish(t *testing.T, d db.DB) int64 {
	t.Helper()
	for newest := int64(-1); ; {
		now, err := d.PublishEvents(t.Context())
		if err != nil {
			t.Fatalf("PublishEvents: %v", err)
		}
		if now == newest {
			return newest
		}
		newest = now
	}
}

// next returns the events since the last call.
func (l *eventLog) next(t *testing.T) []animalstore.Event {
	t.Helper()
	newest := mustPublish(t, l.d)
	events, last, err := l.d.Events(t.Context(), db.EventQuery{After: l.last, Limit: 1000})
	if err != nil || last != newest {
		t.Fatalf("Events after %d: last %d, %v, want last %d", l.last, last, err, newest)
	}
	consecutive(t, l.last, events)
	l.last = last
	return events
}

// want fails the test unless the events since the last call are these, such as
// "pet.created pet/1", with this data.
func (l *eventLog) want(t *testing.T, doing string, want []string, data ...any) {
	t.Helper()
	got := l.next(t)
	if !slices.Equal(types(got), want) {
		t.Fatalf("%s: got events %q, want %q", doing, types(got), want)
	}
	for i := range data {
		if want := unescaped(t, data[i]); string(got[i].Data) != want {
			t.Errorf("%s: event %s has data %s, want %s", doing, got[i].Type, got[i].Data, want)
		}
	}
}

// unescaped returns the JSON that the API would return.
func unescaped(t *testing.T, v any) string {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func subject(t animalstore.EventType, id int64) string {
	return string(t) + " " + animalstore.EventSubject(t.Resource(), id)
}

func changesHaveEvents(t *testing.T, d db.DB) {
	log := &eventLog{d: d}
	log.want(t, "new store", []string{})
	pet := mustCreatePet(t, d, animalstore.NewPet{Name: "<b>&\"\\\u2028\t🐻‍❄️ Zoe\u0308\x7f", CategoryID: math.MinInt64})
	log.want(t, "first pet of a category", []string{subject("pet.created", pet.ID), subject("category.updated", math.MinInt64)}, pet, animalstore.Category{ID: math.MinInt64})
	pet = mustUpdatePet(t, d, pet.ID, func(p *animalstore.Pet) { p.CategoryID, p.Name = 7, "Rex" })
	log.want(t, "change to a new category", []string{subject("pet.updated", pet.ID), "category.updated category/7"}, pet, animalstore.Category{ID: 7})
	pet = mustUpdatePet(t, d, pet.ID, func(p *animalstore.Pet) { p.Name = "Rex II" })
	log.want(t, "change of a name", []string{subject("pet.updated", pet.ID)}, pet)
	mustPutCategory(t, d, animalstore.Category{ID: 7, Name: "<dogs>"})
	mustPutCategory(t, d, animalstore.Category{ID: 8, Name: "cats"})
	log.want(t, "put categories", []string{"category.updated category/7", "category.updated category/8"}, animalstore.Category{ID: 7, Name: "<dogs>"}, animalstore.Category{ID: 8, Name: "cats"})

	order := mustPlaceOrder(t, d, pet.ID)
	pet.Status = animalstore.PetPending
	log.want(t, "order", []string{subject("order.created", order.ID), subject("pet.updated", pet.ID)}, order, pet)
	order = mustMoveOrder(t, d, order.ID, animalstore.OrderApproved)
	log.want(t, "approval, which leaves the pet pending", []string{subject("order.updated", order.ID)}, order)
	order = mustMoveOrder(t, d, order.ID, animalstore.OrderCancelled)
	pet.Status = animalstore.PetAvailable
	log.want(t, "cancellation", []string{subject("order.updated", order.ID), subject("pet.updated", pet.ID)}, order, pet)
	mustDeletePet(t, d, pet.ID)
	log.want(t, "removal", []string{subject("pet.deleted", pet.ID)}, pet)
}

func keyChangesHaveEvents(t *testing.T, d db.DB) {
	log := &eventLog{d: d}
	if _, err := d.CreateFirstKey(t.Context(), plainKey(t, "owner"), hashOf("owner"), noon); err != nil {
		t.Fatal(err)
	}
	owner := mustKeys(t, d)[0]
	log.want(t, "first key", []string{subject("key.created", owner.ID)}, owner)
	key := mustCreateKey(t, d, plainKey(t, "<one>"), "one")
	log.want(t, "key", []string{subject("key.created", key.ID)}, key)
	update := func(doing string, eventType animalstore.EventType, change func(*animalstore.Key)) {
		t.Helper()
		log.want(t, doing, []string{subject(eventType, key.ID)}, mustUpdateKey(t, d, key.ID, change))
	}
	update("new name", "key.updated", func(k *animalstore.Key) { k.Name = "two" })
	update("expiry", "key.updated", func(k *animalstore.Key) { k.ExpiresAt = later })
	rotated, err := d.RotateKey(t.Context(), key.ID, db.KeyRotation{Hash: hashOf("two"), At: noon, OldUntil: later}, nil)
	if err != nil {
		t.Fatal(err)
	}
	log.want(t, "rotation", []string{subject("key.rotated", key.ID)}, rotated)
	banned := rotated
	banned.Ban = animalstore.Ban{Until: later, Level: 1}
	mustBan(t, d, key.ID, noon, banned.Ban)
	log.want(t, "ban", []string{subject("key.banned", key.ID)}, banned)
	mustBan(t, d, key.ID, noon, banned.Ban)
	log.want(t, "the same ban again", []string{})
	update("unban", "key.unbanned", func(k *animalstore.Key) { k.Unban(noon, noon) })
	mustBan(t, d, key.ID, noon, banned.Ban)
	log.want(t, "a ban that was lifted", []string{})
	banned.Ban.Level = 2
	mustBan(t, d, key.ID, animalstore.AtMilli(noon.Milli()+5), banned.Ban)
	log.want(t, "next ban", []string{subject("key.banned", key.ID)}, banned)
	update("revocation", "key.revoked", func(k *animalstore.Key) { k.Revoke(noon) })
}

// noChangeNoEvent: a write that changes nothing, is refused or is replayed stores nothing and
// adds no event.
func noChangeNoEvent(t *testing.T, d db.DB) {
	pet := mustCreateWith(t, d, rex, retryOf("a", "a"), false)
	other := mustCreatePet(t, d, rex)
	order := mustPlaceOrder(t, d, other.ID)
	key := mustCreateKey(t, d, plainKey(t, "one"), "one")
	mustPutCategory(t, d, animalstore.Category{ID: 9, Name: "same"})
	mustRevoke(t, d, key.ID)
	log := &eventLog{d: d}
	log.next(t)
	refuse := func(p *animalstore.Pet, _ bool) error {
		p.Name, p.CategoryID, p.Status = "never", 77, animalstore.PetSold
		return errNotNow
	}
	ctx := t.Context()
	for doing, write := range map[string]func() error{
		"replayed pet":    func() error { mustCreateWith(t, d, rex, retryOf("a", "a"), true); return nil },
		"reused key":      func() error { _, _, err := d.CreatePet(ctx, rex, retryOf("a", "b")); return err },
		"unchanged pet":   func() error { mustUpdatePet(t, d, pet.ID, func(*animalstore.Pet) {}); return nil },
		"refused change":  func() error { _, err := d.UpdatePet(ctx, pet.ID, refuse); return err },
		"absent pet":      func() error { _, err := d.UpdatePet(ctx, 1<<40, allow); return err },
		"refused removal": func() error { return d.DeletePet(ctx, pet.ID, refuse) },
		"order of a pending pet": func() error {
			_, _, err := d.PlaceOrder(ctx, animalstore.NewOrder{PetID: other.ID}, noon, nil)
			return err
		},
		"unchanged order": func() error {
			_, err := d.UpdateOrder(ctx, order.ID, func(*animalstore.Order) error { return nil })
			return err
		},
		"unchanged category": func() error { mustPutCategory(t, d, animalstore.Category{ID: 9, Name: "same"}); return nil },
		"refused move": func() error {
			_, err := d.UpdateOrder(ctx, order.ID, func(o *animalstore.Order) error { o.Status = animalstore.OrderApproved; return errNotNow })
			return err
		},
		"refused category": func() error {
			_, err := d.PutCategory(ctx, animalstore.Category{ID: 10, Name: "never"}, func(*animalstore.Category) error { return errNotNow })
			return err
		},
		"secret in use": func() error { _, err := d.CreateKey(ctx, plainKey(t, "two"), hashOf("one"), noon); return err },
		"not the first": func() error { _, err := d.CreateFirstKey(ctx, plainKey(t, "two"), hashOf("two"), noon); return err },
		"revoked again": func() error {
			mustUpdateKey(t, d, key.ID, func(k *animalstore.Key) { k.Revoke(later) })
			return nil
		},
		"rotated, revoked": func() error {
			_, err := d.RotateKey(ctx, key.ID, db.KeyRotation{Hash: hashOf("two"), At: noon, OldUntil: later}, nil)
			return err
		},
		"unban, not banned": func() error {
			mustUpdateKey(t, d, key.ID, func(k *animalstore.Key) { k.Unban(later, noon) })
			return nil
		},
		"usage": func() error {
			return d.SaveUsage(ctx, []db.KeyUsage{{KeyID: key.ID, Hour: noon, Admitted: 1, LastUsed: later}})
		},
		"limits": func() error {
			return d.SaveLimitStates(ctx, []db.KeyLimitState{{KeyID: key.ID, LimitState: db.LimitState{Strikes: 5}}})
		},
	} {
		err := write()
		var coded *animalstore.Error
		if err != nil && !errors.As(err, &coded) && !errors.Is(err, errNotNow) && !errors.Is(err, db.ErrNotFound) && !errors.Is(err, db.ErrExists) {
			t.Errorf("%s: %v", doing, err)
		}
		log.want(t, doing, []string{})
	}
	wantPet(t, d, pet)
	wantOrder(t, d, order)
	wantCategories(t, d, animalstore.Category{ID: 1}, animalstore.Category{ID: 9, Name: "same"})
	if keys := mustKeys(t, d); len(keys) != 1 {
		t.Errorf("got keys %+v, want only one", keys)
	}
}

func eventsHaveActors(t *testing.T, d db.DB) {
	before := animalstore.At(time.Now())
	log := &eventLog{d: d}
	want := func(doing string, actor animalstore.Actor, n int) {
		t.Helper()
		events := log.next(t)
		for _, e := range events {
			byKey := e.KeyID != nil && *e.KeyID == 42 && e.RequestID != nil && *e.RequestID == "req-1"
			if e.Actor != actor || byKey != (actor == animalstore.ActorKey) || !byKey && (e.KeyID != nil || e.RequestID != nil) {
				t.Errorf("%s: %s by %s, key %v and request %v, want %s", doing, brief(e), e.Actor, e.KeyID, e.RequestID, actor)
			}
			if e.Time.Before(before.Time) || e.Time.After(time.Now()) || e.Time != animalstore.At(e.Time.Time) {
				t.Errorf("%s: time %v isn't the time of the change", brief(e), e.Time)
			}
		}
		if len(events) != n {
			t.Errorf("%s: got %q, want %d", doing, types(events), n)
		}
	}
	mustCreatePet(t, d, animalstore.NewPet{Name: "by the command line", CategoryID: 1})
	webhook := mustCreateWebhook(t, d, "pet.*")
	want("without an actor", animalstore.ActorCommandLine, 3)

	key := db.WithOrigin(t.Context(), db.Origin{KeyID: 42, RequestID: "req-1"})
	pet, _, err := d.CreatePet(key, rex, retryOf("a", "a"))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.PlaceOrder(key, animalstore.NewOrder{PetID: pet.ID}, noon, nil); err != nil {
		t.Fatal(err)
	}
	created, err := d.CreateKey(key, plainKey(t, "one"), hashOf("one"), noon)
	if err != nil {
		t.Fatal(err)
	}
	want("a key", animalstore.ActorKey, 1+2+1)

	if _, err := d.CreateKey(db.WithOrigin(t.Context(), db.Service), plainKey(t, "two"), hashOf("two"), noon); err != nil {
		t.Fatal(err)
	}
	want("the service", animalstore.ActorService, 1)
	// The key's own request is over its limit, but it doesn't ban itself.
	ban := db.LimitState{BannedAt: noon.Milli(), BannedUntil: later.Milli(), BanLevel: 1}
	if err := d.SaveLimitStates(key, []db.KeyLimitState{{KeyID: created.ID, LimitState: ban}}); err != nil {
		t.Fatal(err)
	}
	want("a ban", animalstore.ActorService, 1)
	dispatch(t, d, noon)
	for _, due := range claim(t, d, noon) {
		if due.WebhookID == webhook.ID {
			finish(t, d, &due, noon, 410)
		}
	}
	want("410", animalstore.ActorService, 1)
}

// eventListsSelect compares lists with the filtered list of all events.
func eventListsSelect(t *testing.T, d db.DB) {
	for range 4 {
		pet := mustCreatePet(t, d, rex)
		order := mustPlaceOrder(t, d, pet.ID)
		mustUpdatePet(t, d, pet.ID, func(p *animalstore.Pet) { p.Name = "renamed" })
		if pet.ID%2 == 0 {
			mustMoveOrder(t, d, order.ID, animalstore.OrderCancelled)
			mustAddPhoto(t, d, newPhoto(pet.ID, 10, 1))
			mustDeletePet(t, d, pet.ID)
		}
	}
	mustCreateKey(t, d, plainKey(t, "one"), "one")
	log := &eventLog{d: d}
	all := log.next(t)
	newest := log.last
	for _, q := range []db.EventQuery{
		{}, {Types: []animalstore.EventType{"pet.created"}}, {Types: []animalstore.EventType{"order.created", "key.created"}},
		{Types: []animalstore.EventType{"webhook.created"}}, {Subject: all[0].Subject}, {Subject: "order/1"}, {Subject: "key/1"},
		{Subject: "pet/1", Types: []animalstore.EventType{"pet.updated", "order.created"}}, {Subject: "pet/1", Types: []animalstore.EventType{"order.created"}},
		{PetID: 1}, {PetID: 2}, {PetID: 999999}, {PetID: 2, Types: []animalstore.EventType{"photo.created", "photo.deleted", "order.updated", "key.created"}},
		{PetID: 1, Types: []animalstore.EventType{"key.created"}}, {Subject: "photo/1"}, {Subject: "pet/0"},
		{Subject: "pet/999999"}, {Subject: "pet/01"}, {Subject: "nonsense"}, {Subject: "dog/1"},
	} {
		var matching []animalstore.Event
		for _, e := range all {
			if (q.Subject == "" || e.Subject == q.Subject) && (q.PetID == 0 || e.PetID() == q.PetID) && (q.Types == nil || slices.Contains(q.Types, e.Type)) {
				matching = append(matching, e)
			}
		}
		for after := int64(0); after <= newest; after += 3 {
			for _, limit := range []int{1, 3, 100} {
				q.After, q.Limit = after, limit
				want := slices.DeleteFunc(slices.Clone(matching), func(e animalstore.Event) bool { return e.ID <= after })
				wantLast := newest
				if len(want) >= limit {
					want = want[:limit]
					wantLast = want[limit-1].ID
				}
				got, last, err := d.Events(t.Context(), q)
				if err != nil || got == nil || !slices.Equal(types(got), types(want)) || last < after || last > newest ||
					len(want) > 0 && (got[0].ID != want[0].ID || last < want[len(want)-1].ID) || last > wantLast && len(want) == limit {
					t.Fatalf("Events(%+v) = %q, last %d, %v, want %q, last %d", q, types(got), last, err, types(want), wantLast)
				}
			}
		}
		q.After = 0
		wantBackwards(t, d, q, matching)
	}
}

// wantBackwards reads pages of various sizes backwards, from the newest event on, and
// expects these events.
func wantBackwards(t *testing.T, d db.DB, q db.EventQuery, want []animalstore.Event) {
	t.Helper()
	for _, q.Limit = range []int{1, 2, 100} {
		var got []animalstore.Event // oldest first
		for q.Before = db.LatestEvents; q.Before != 0; {
			page, last, err := d.Events(t.Context(), q)
			if err != nil || page == nil || len(page) > q.Limit || q.Before != db.LatestEvents && last >= q.Before {
				t.Fatalf("Events(%+v) = %q, last %d, %v", q, types(page), last, err)
			}
			slices.Reverse(page)
			got, q.Before = append(page, got...), last
		}
		if !slices.Equal(types(got), types(want)) {
			t.Errorf("%+v: got %q, want %q", q, types(got), types(want))
		}
	}
}

// manyEvents: a query for few of many events examines a limited number of them at a time,
// in both directions. But the events of one resource come in one call, without those of
// other resources with the same id.
func manyEvents(t *testing.T, d db.DB) {
	pet := mustCreatePet(t, d, rex)
	mustPutCategory(t, d, animalstore.Category{ID: pet.ID, Name: "with the id of the pet"})
	createMany(t, d, db.MaxEventsExamined+200)
	mustCreateKey(t, d, plainKey(t, "rare"), "rare")
	mustUpdatePet(t, d, pet.ID, func(p *animalstore.Pet) { p.Name = "Max" })
	newest := mustPublish(t, d)

	rare := db.EventQuery{Types: []animalstore.EventType{"key.created"}, Limit: 10}
	got, last, err := d.Events(t.Context(), rare)
	if err != nil || len(got) != 0 || last < 100 || last > db.MaxEventsExamined {
		t.Fatalf("Events = %q, last %d, %v, want none, and last at most %d", types(got), last, err, db.MaxEventsExamined)
	}
	rare.After = last
	if got, last, err = d.Events(t.Context(), rare); err != nil || len(got) != 1 || last != newest {
		t.Errorf("Events = %q, last %d, %v, want the key's and %d", types(got), last, err, newest)
	}
	rare.After, rare.Before = 0, newest-1
	if got, last, err := d.Events(t.Context(), rare); err != nil || len(got) != 0 || last < newest-1-db.MaxEventsExamined || last == 0 {
		t.Errorf("Events(%+v) = %q, last %d, %v, want to stop after at most %d", rare, types(got), last, err, db.MaxEventsExamined)
	}

	of := db.EventQuery{Subject: animalstore.EventSubject("pet", pet.ID), Limit: 100}
	want := []string{subject("pet.created", pet.ID), subject("pet.updated", pet.ID)}
	all, last, err := d.Events(t.Context(), of)
	if err != nil || !slices.Equal(types(all), want) || last != newest {
		t.Fatalf("Events(%+v) = %q, last %d, %v, want %q and last %d", of, types(all), last, err, want, newest)
	}
	wantBackwards(t, d, of, all)
	of = db.EventQuery{PetID: pet.ID, Limit: 100}
	if all, last, err := d.Events(t.Context(), of); err != nil || !slices.Equal(types(all), want) || last != newest {
		t.Fatalf("Events(%+v) = %q, last %d, %v, want %q and last %d", of, types(all), last, err, want, newest)
	}
	wantBackwards(t, d, of, all)
}

// eventRangeHolds: a list can start within the range, and nowhere else.
func eventRangeHolds(t *testing.T, d db.DB) {
	check := func(first, newest int64) {
		t.Helper()
		mustPublish(t, d)
		if f, n, err := d.EventRange(t.Context()); err != nil || f != first || n != newest {
			t.Fatalf("EventRange = %d, %d, %v, want %d and %d", f, n, err, first, newest)
		}
		for _, subject := range []string{"", "pet/1", "nonsense"} {
			for _, types := range [][]animalstore.EventType{nil, {"pet.created"}} {
				for _, after := range []int64{math.MinInt64, first - 1, first, newest, newest + 1, math.MaxInt64} {
					_, last, err := d.Events(t.Context(), db.EventQuery{After: after, Subject: subject, Types: types, Limit: 5})
					if inside := after >= first && after <= newest; inside && (err != nil || last < after) || !inside && !errors.Is(err, db.ErrEventsExpired) {
						t.Errorf("Events after %d of %d to %d, subject %q, types %q: last %d, %v", after, first, newest, subject, types, last, err)
					}
				}
				for _, before := range []int64{1, first + 1, newest, newest + 1, math.MaxInt64 - 1} {
					got, _, err := d.Events(t.Context(), db.EventQuery{Before: before, Subject: subject, Types: types, Limit: 5})
					if errors.Is(err, db.ErrEventsExpired) != (before > newest) || before <= newest && err != nil || before <= first+1 && len(got) != 0 {
						t.Errorf("Events before %d of %d to %d, subject %q, types %q: %d events, %v", before, first, newest, subject, types, len(got), err)
					}
				}
			}
		}
	}
	check(0, 0)
	fill(t, d, 6) // with 5 categories
	check(0, 11)
	drop := func(before animalstore.Time, most, want int) {
		t.Helper()
		if got, err := d.DropEvents(t.Context(), before, most); err != nil || got != want {
			t.Fatalf("DropEvents(%v, %d) = %d, %v, want %d", before, most, got, err, want)
		}
	}
	events, _, err := d.Events(t.Context(), db.EventQuery{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	drop(events[0].Time, 100, 0) // an event of that time stays
	check(0, 11)
	future := animalstore.At(time.Now().Add(time.Hour))
	drop(future, 4, 4)
	check(4, 11)
	drop(future, 100, 6) // all but the newest
	check(10, 11)
	drop(future, 100, 0)
	fill(t, d, 1)
	check(10, 12)
}
