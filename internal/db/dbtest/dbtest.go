// Package dbtest is the test suite that every engine must pass. It checks the promises
// in the comments of package db.
package dbtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"

	"animalstore"
	"animalstore/internal/db"
)

// Run runs the suite against an engine. open returns a new, empty database for each case
// and closes it when the test ends.
func Run(t *testing.T, open func(t *testing.T) db.DB) {
	cases := []struct {
		promise string
		check   func(*testing.T, db.DB)
	}{
		{"what is absent is ErrNotFound", absentResources},
		{"a batch of pets is added in order with its events, and only once", batchIsAdded},
		{"a batch of pets that fails adds none", batchFails},
		{"a list of pets shows one state of the store", listIsOneState},
		{"a page by name looks at a limited number of entries", namesAreRead},
		{"random names are found as in the model, while pets are renamed, added and removed", findsRandomNames},
		{"a photo and its images read back", photoReadsBack},
		{"a list of photos contains what its query selects", photoListsSelect},
		{"every change of photos has its events, and a pet is removed after its photos", photosHaveEvents},
		{"a retried photo returns the stored result", replaysPhotos},
		{"of many concurrent photos, a pet gets ten", photosAtOnce},
		{"all photos together never take more than the limit", photosLimit},
		{"no photo outlives its pet", photosDuringRemoval},
		{"reference and note of an order change in any status", orderTextsChange},
		{"of a hundred concurrent orders for one pet, one succeeds", oneOrderWins},
		{"of many callers that replace a category they read, one succeeds", oneReplacesACategory},
		{"a retried new pet returns the stored result, which does not change", replaysPets},
		{"a retried order returns the stored result", replaysOrders},
		{"a different body, token, operation or key is a different write", tokensAreApart},
		{"a failed write can be retried", failuresAreRetried},
		{"an idempotency record is valid for a day", recordsExpire},
		{"idempotency records are dropped in small steps", dropsRecords},
		{"a write sent many times at once happens once", sentManyTimes},
		{"a key reads back as written", keyReadsBack},
		{"keys are listed newest first, in pages, revoked ones included", keyLists},
		{"a changed key reads back", keyChangesReadBack},
		{"a change of a key sees whether another key can manage keys", otherAdmins},
		{"if all admin keys are revoked at once, the last one stays", lastAdminRace},
		{"a rotated key has a new secret, and keeps the old one for a while", rotation},
		{"the version of the keys changes with every change of one, and only then", keysVersionChanges},
		{"usage adds up", usageAdds},
		{"usage is dropped in small steps", dropsUsage},
		{"the state of limits reads back", limitsReadBack},
		{"older limits do not replace newer ones", olderLimits},
		{"a key shows its ban until it is lifted", bansOfKeys},
		{"each new ban in a save is one event", oneEventPerSave},
		{"a session reads back until it is removed", sessionReadsBack},
		{"sessions and forms are dropped in small steps", dropsSessions},
		{"suspending a key ends its sessions", suspensionEndsSessions},
		{"of many callers that send a form at once, one succeeds", formsAreUsedOnce},
		{"failed requests read back", failuresReadBack},
		{"a list of failed requests contains what its query selects", failureListsSelect},
		{"of failed requests, one a second of a key and code and the newest are kept", failuresAreLimited},
		{"concurrent servers store no failed request twice, and not too many", failuresAtOnce},
		{"a follower of failed requests misses none, with many writers", failuresAreFollowed},
		{"failed requests are dropped in small steps", dropsFailures},
		{"a first key is created only if there never was a key", firstKeyOnlyOnce},
		{"of many concurrent callers, one creates the first key", firstKeyRace},
		{"every change of pets, orders and categories has its events", changesHaveEvents},
		{"every change of keys has its event", keyChangesHaveEvents},
		{"a write that changes nothing has no event", noChangeNoEvent},
		{"an event has the time and the actor of its change", eventsHaveActors},
		{"a list of events contains what its query selects", eventListsSelect},
		{"events start in their range, which shrinks as they are dropped", eventRangeHolds},
		{"a query examines a limited number of events, unless it is for one resource", manyEvents},
		{"followers see every event once, in the same order, with many writers", followersSeeEverything},
		{"a webhook reads back as written, with its events", webhooksReadBack},
		{"webhooks are listed newest first, and there are not too many", webhookLists},
		{"a webhook gets the events from while it is active, whenever they are dispatched", pausesLoseNothing},
		{"a webhook gets the events from while it is active, with concurrent dispatchers", pausesInAnyOrder},
		{"a webhook whose types change gets the events it always selects, with a concurrent writer", typesDuringWrites},
		{"a webhook that is disabled and resumed gets the events from before", disabledWebhooksContinue},
		{"a webhook with too many undispatched events can't be changed yet", changesFarBehind},
		{"a delivery is claimed by one worker at a time, and few deliveries of a webhook at once", claimsAreExclusive},
		{"concurrent claims and results claim nothing twice", finishAtOnce},
		{"storing a result of a paused or deleted webhook claims no other delivery", pausedFinish},
		{"pending work for webhooks, and when it falls due, is found", workIsFound},
		{"attempts are stored until the last", attemptsAreStored},
		{"a webhook that is gone or fails for five days is disabled", webhooksAreDisabled},
		{"a rotated secret also signs for a while", secretsRotate},
		{"a delivery shows the body it sends, even after its event was dropped", deliveriesShowBodies},
		{"a ping has sample data of any type", pingsHaveSamples},
		{"all deliveries that match are due again", deliveriesAreRetried},
		{"very many deliveries are retried in small steps", retriesInSteps},
		{"a retry during an attempt is not lost", retriesDuringAttempts},
		{"deliveries are listed newest first and dropped in small steps", deliveryLists},
		{"a change that panics fails alone", panickedChange},
		{"a context that ended before a write begins cancels it", cancelledWrites},
		{"reads in one stable generation return the same result", generationHolds},
		{"an idle store responds and has a size", statusIsKnown},
		{"loaded rows read back with their ids, without events", loadedReadsBack},
		{"loaded rows behave like others", loadedTakesPart},
		{"nobody else gets a reserved id", reservedIsReserved},
		{"concurrent callers reserve different ids", reserveAtOnce},
		{"loading a taken id or a second open order changes nothing", refusedLoads},
		{"loaded photos count like others", loadedPhotos},
	}
	for _, c := range cases {
		t.Run(c.promise, func(t *testing.T) { c.check(t, open(t)) })
	}
	t.Run("any sequence of operations has the same results as the model", func(t *testing.T) { sequences(t, open) })
	t.Run("concurrent operations are linearizable", func(t *testing.T) { linearizable(t, open) })
}

func mustCreatePet(t *testing.T, d db.DB, p animalstore.NewPet) animalstore.Pet {
	t.Helper()
	if err := p.Validate(); err != nil {
		t.Fatalf("the test's pet %+v isn't valid: %v", p, err)
	}
	pet, _, err := d.CreatePet(t.Context(), p, nil)
	if err != nil {
		t.Fatalf("CreatePet(%+v): %v", p, err)
	}
	return pet
}

// createMany adds n pets.
func createMany(t *testing.T, d db.DB, n int) {
	t.Helper()
	for batch := range slices.Chunk(slices.Repeat([]animalstore.NewPet{rex}, n), animalstore.MaxPetBatch) {
		if _, _, err := d.CreatePets(t.Context(), batch, nil); err != nil {
			t.Fatalf("CreatePets: %v", err)
		}
	}
}

// fill adds n pets with alternating statuses and returns them newest first.
func fill(t *testing.T, d db.DB, n int) []animalstore.Pet {
	t.Helper()
	pets := make([]animalstore.Pet, 0, n)
	for i := range n {
		pets = append(pets, mustCreatePet(t, d, animalstore.NewPet{
			Name: fmt.Sprint("pet ", i), CategoryID: int64(i % 5), Status: animalstore.PetStatuses[i%3],
		}))
	}
	slices.Reverse(pets)
	return pets
}

func mustList(t *testing.T, d db.DB, q animalstore.PetQuery, page db.Page) []animalstore.Pet {
	t.Helper()
	pets, err := d.Pets(t.Context(), q, page)
	if err != nil {
		t.Fatalf("Pets(%+v): %v", q, err)
	}
	return pets
}

func hasCode(err error, code animalstore.Code) bool {
	var coded *animalstore.Error
	return errors.As(err, &coded) && coded.Code == code
}

func wantCode(t *testing.T, err error, code animalstore.Code) {
	t.Helper()
	if !hasCode(err, code) {
		t.Errorf("got error %v, want one with code %s", err, code)
	}
}

// wantNotFound fails the test unless err is [db.ErrNotFound] without a code, because an
// engine's caller words the message.
func wantNotFound(t *testing.T, err error) {
	t.Helper()
	var coded *animalstore.Error
	if !errors.Is(err, db.ErrNotFound) || errors.As(err, &coded) {
		t.Errorf("got error %v, want ErrNotFound without a code", err)
	}
}

// together calls f(0) … f(n-1) concurrently and waits for all of them. f must return its
// error instead of calling t.Fatal.
func together(t *testing.T, n int, f func(i int) error) {
	t.Helper()
	var wg sync.WaitGroup
	gate := make(chan struct{})
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() {
			<-gate
			errs[i] = f(i)
		})
	}
	close(gate)
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// absentResources: what doesn't exist is [db.ErrNotFound], and functions aren't called for it.
func absentResources(t *testing.T, d db.DB) {
	ctx := t.Context()
	pet := mustCreatePet(t, d, rex)
	photo := mustAddPhoto(t, d, newPhoto(pet.ID, 10, 1))
	mustPlaceOrder(t, d, pet.ID)
	mustCreateKey(t, d, plainKey(t, "one"), "one")
	called := func() error { t.Error("the function was called"); return nil }
	for name, call := range map[string]func(id int64) error{
		"Pet": func(id int64) error { _, err := d.Pet(ctx, id); return err },
		"UpdatePet": func(id int64) error {
			_, err := d.UpdatePet(ctx, id, func(*animalstore.Pet, bool) error { return called() })
			return err
		},
		"DeletePet": func(id int64) error {
			return d.DeletePet(ctx, id, func(*animalstore.Pet, bool) error { return called() })
		},
		"PlaceOrder": func(id int64) error {
			_, _, err := d.PlaceOrder(ctx, animalstore.NewOrder{PetID: id}, noon, nil)
			return err
		},
		"Order": func(id int64) error { _, err := d.Order(ctx, id); return err },
		"UpdateOrder": func(id int64) error {
			_, err := d.UpdateOrder(ctx, id, func(*animalstore.Order) error { return called() })
			return err
		},
		"Category": func(id int64) error { _, err := d.Category(ctx, id); return err },
		"Key":      func(id int64) error { _, err := d.Key(ctx, id); return err },
		"UpdateKey": func(id int64) error {
			_, err := d.UpdateKey(ctx, id, noon, func(*animalstore.Key, bool) error { return called() })
			return err
		},
		"RotateKey": func(id int64) error {
			_, err := d.RotateKey(ctx, id, db.KeyRotation{Hash: hashOf("new"), At: noon, OldUntil: later}, nil)
			return err
		},
		"AddPhoto":  func(id int64) error { _, _, err := d.AddPhoto(ctx, newPhoto(id, 10, 1), noLimit, nil); return err },
		"Photo":     func(id int64) error { _, err := d.Photo(ctx, id); return err },
		"Image":     func(id int64) error { _, err := d.Image(ctx, id, db.Thumbnail); return err },
		"ImagePart": func(id int64) error { _, err := d.ImagePart(ctx, id, db.FullImage, 0); return err },
		"DeletePhoto": func(id int64) error {
			return d.DeletePhoto(ctx, id, func(*animalstore.Photo) error { return called() })
		},
	} {
		for _, id := range []int64{0, -1, 1 << 40, math.MaxInt64, math.MinInt64} {
			t.Run(fmt.Sprint(name, " ", id), func(t *testing.T) { wantNotFound(t, call(id)) })
		}
	}
	_, err := d.ImagePart(ctx, photo.ID, db.FullImage, -1)
	wantNotFound(t, err)
	if got, found, err := d.KeyByHash(ctx, hashOf("two")); err != nil || found {
		t.Errorf("KeyByHash of another secret = %+v, %v, %v, want not found", got, found, err)
	}
}

func statusIsKnown(t *testing.T, d db.DB) {
	if err := d.Ping(t.Context()); err != nil {
		t.Errorf("Ping: %v, want nil", err)
	}
	if bytes, err := d.Size(t.Context()); err != nil || bytes < 1<<10 {
		t.Errorf("Size = %d, %v, want at least a kilobyte", bytes, err)
	}
}

func cancelled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
