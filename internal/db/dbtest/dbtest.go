// Package dbtest is the one suite every database passes: it holds an engine to
// the comments of package db.
package dbtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"animalstore"
	"animalstore/internal/db"
)

// Run puts an engine through the suite. open returns an empty database of its
// own for each case and closes it when the test ends.
func Run(t *testing.T, open func(t *testing.T) db.DB) {
	cases := []struct {
		promise string
		check   func(*testing.T, db.DB)
	}{
		{"a pet reads back as it was written", petReadsBack},
		{"a pet without a status is available", statusDefaults},
		{"every id is higher than those that were known before", idsRise},
		{"an absent pet is ErrNotFound", petNotFound},
		{"pets are listed by descending id", listOrder},
		{"a list holds what its query selects", listSelects},
		{"paging misses and repeats nothing while others insert", pagingBesideInserts},
		{"paging goes on where its last pet was, whatever became of that", positionsSurvive},
		{"paging sees what stays exactly once while others change and remove", walksBesideChanges},
		{"a changed pet reads back", changeReadsBack},
		{"a change that is refused leaves everything as it was", refusedChange},
		{"a removed pet is gone, and its id with it", removedIsGone},
		{"an absent pet cannot be changed, removed or ordered", absentPets},
		{"changes at once do not lose each other", changesAtOnce},
		{"a list of no orders is empty", noOrders},
		{"an order and its pet read back", orderReadsBack},
		{"an absent order is ErrNotFound", absentOrders},
		{"only an available pet can be ordered", onlyAvailableIsOrdered},
		{"whoever changes a pet is told of an open order", orderedPets},
		{"a move that is refused leaves order and pet as they were", refusedMove},
		{"an order outlives its pet", orderOutlivesPet},
		{"of a hundred orders for one pet at once, one wins", oneOrderWins},
		{"a list of orders holds what its query selects", orderListsSelect},
		{"paging through orders sees each once while they move", orderWalksBesideChanges},
		{"an absent category is ErrNotFound", absentCategories},
		{"a category comes with its first pet", categoriesComeWithPets},
		{"naming a category tells whether it is new", putCategoryTells},
		{"a list of categories holds what its query selects", categoryListsSelect},
		{"of many that name a category at once, one makes it", putsAtOnce},
		{"of many that replace a category they read, one does", oneReplacesACategory},
		{"a new pet sent again is answered again", replaysPets},
		{"a stored answer stays what it was", replaysStay},
		{"an order sent again is answered again", replaysOrders},
		{"another body, token, route or key is another write", tokensAreApart},
		{"a write that failed can be sent again", failuresAreTriedAgain},
		{"an answer is kept for a day", answersExpire},
		{"answers are dropped in small steps", dropsAnswers},
		{"a write sent many times at once is done once", sentManyTimes},
		{"a key reads back as it was written", keyReadsBack},
		{"an unknown hash is not found", hashNotFound},
		{"keys are listed newest first, revoked ones included", keysInOrder},
		{"a revoked key keeps its first time", revokeKeepsFirstTime},
		{"an absent key is ErrNotFound", absentKeys},
		{"a changed key reads back", keyChangesReadBack},
		{"keys are listed in pages", keysInPages},
		{"whoever changes a key is told of another that manages keys", otherAdmins},
		{"of keys revoked at once the last that manages keys is left", lastAdminRace},
		{"a rotated key has a new secret, and the old for a while", rotation},
		{"usage adds up", usageAdds},
		{"usage is dropped in small steps", dropsUsage},
		{"the state of limits reads back", limitsReadBack},
		{"older limits do not replace newer ones", olderLimits},
		{"a first key is made only where there never was one", firstKeyOnlyOnce},
		{"of many callers at once, one makes the first key", firstKeyRace},
		{"a write that returns an error changed nothing", failedWriteChangesNothing},
		{"a change that panics fails alone", panickedChange},
		{"a context that ended before a write is begun cancels it", cancelledWrite},
		{"a context that ended before a change is begun cancels it", cancelledChanges},
		{"a write that returned is seen by every later read", writesAreSeen},
		{"creators at once get ids of their own and see their own write", creatorsAtOnce},
		{"reads under one stable generation have the same outcome", generationHolds},
		{"a write that returned has ended the generation before it", generationEnds},
		{"ping works while reads would", ping},
	}
	for _, c := range cases {
		t.Run(c.promise, func(t *testing.T) { c.check(t, open(t)) })
	}
	t.Run("any sequence of operations has the outcome of the model", func(t *testing.T) { sequences(t, open) })
	t.Run("operations at once are linearizable", func(t *testing.T) { linearizable(t, open) })
	t.Run("operations at once on each pet are linearizable", func(t *testing.T) { linearizablePets(t, open) })
}

func mustCreatePet(t *testing.T, d db.DB, p animalstore.NewPet) animalstore.Pet {
	t.Helper()
	if err := p.Validate(); err != nil {
		t.Fatalf("the test's own pet %+v is not valid: %v", p, err)
	}
	pet, _, err := d.CreatePet(t.Context(), p, nil)
	if err != nil {
		t.Fatalf("CreatePet(%+v): %v", p, err)
	}
	return pet
}

// fill adds n pets whose statuses take turns, and returns them newest first.
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

func mustList(t *testing.T, d db.DB, q db.PetQuery) []animalstore.Pet {
	t.Helper()
	pets, err := d.Pets(t.Context(), q)
	if err != nil {
		t.Fatalf("Pets(%+v): %v", q, err)
	}
	return pets
}

func wantCode(t *testing.T, err error, code animalstore.Code) {
	t.Helper()
	var coded *animalstore.Error
	if !errors.As(err, &coded) || coded.Code != code {
		t.Errorf("got error %v, want one with code %s", err, code)
	}
}

// wantNotFound fails the test unless err is [db.ErrNotFound] and nothing more:
// an engine that adds a code of its own would decide what callers read.
func wantNotFound(t *testing.T, err error) {
	t.Helper()
	var coded *animalstore.Error
	if !errors.Is(err, db.ErrNotFound) || errors.As(err, &coded) {
		t.Errorf("got error %v, want ErrNotFound without a code", err)
	}
}

// together calls f(0) … f(n-1) at once and waits for all. f must not call
// t.Fatal: it returns its error.
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

func ping(t *testing.T, d db.DB) {
	if err := d.Ping(t.Context()); err != nil {
		t.Errorf("Ping: %v, want nil", err)
	}
}

func cancelled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
