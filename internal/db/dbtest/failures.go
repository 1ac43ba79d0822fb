package dbtest

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
)

var manyFailures = db.FailureLimits{PerKey: 1 << 20, Total: 1 << 20}

// failureOf is a failure of a key some seconds after noon, with the request id "r" and n.
func failureOf(key, n int64, code animalstore.Code) animalstore.Failure {
	route, path := "/v1/pets/{petId}", fmt.Sprint("/v1/pets/", n)
	return animalstore.Failure{
		Time: animalstore.At(noon.Truncate(time.Second).Add(time.Duration(n) * time.Second)), RequestID: fmt.Sprint("r", n), KeyID: key, Method: "GET", Route: &route, Path: &path,
		Status: 404, Code: code, Message: "there is no pet with this id", DurationMs: n,
	}
}

func mustAddFailures(t *testing.T, d db.DB, limits db.FailureLimits, failures ...animalstore.Failure) {
	t.Helper()
	if err := d.AddFailures(t.Context(), failures, limits); err != nil {
		t.Fatal(err)
	}
}

// failuresOf returns the failures that a query selects, without their ids, newest first.
func failuresOf(t *testing.T, d db.DB, q animalstore.FailureQuery) []animalstore.Failure {
	t.Helper()
	all, err := d.Failures(t.Context(), q, db.Page{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.IsSortedFunc(all, func(a, b animalstore.Failure) int { return int(b.ID - a.ID) }) {
		t.Errorf("Failures(%+v) aren't sorted by descending id: %+v", q, all)
	}
	return all
}

// wantFailures fails the test unless a query selects these failures, newest first, which are
// written as "key code n".
func wantFailures(t *testing.T, d db.DB, q animalstore.FailureQuery, want ...string) {
	t.Helper()
	got := []string{}
	for _, f := range failuresOf(t, d, q) {
		got = append(got, fmt.Sprint(f.KeyID, " ", f.Code, " ", f.DurationMs))
	}
	if !slices.Equal(got, want) {
		t.Errorf("Failures(%+v): got %q, want %q", q, got, want)
	}
}

const noSuchPet, noSuchRoute = animalstore.PetNotFound, animalstore.RouteNotFound

func failuresReadBack(t *testing.T, d db.DB) {
	found, lost := failureOf(7, 1, noSuchPet), failureOf(7, 1, noSuchRoute)
	lost.Route, lost.Path = nil, nil
	mustAddFailures(t, d, manyFailures, found, lost)
	got := failuresOf(t, d, animalstore.FailureQuery{})
	if len(got) != 2 || got[1].ID < 1 || got[0].ID <= got[1].ID {
		t.Fatalf("got %+v, want two with rising ids", got)
	}
	if got[0].Route != nil || got[0].Path != nil || *got[1].Route != *found.Route || *got[1].Path != *found.Path {
		t.Errorf("got %+v, want the routes and paths of %+v", got, []animalstore.Failure{lost, found})
	}
	for i, want := range []animalstore.Failure{lost, found} {
		want.ID, want.Route, want.Path = got[i].ID, got[i].Route, got[i].Path
		if got[i] != want {
			t.Errorf("got %+v, want %+v", got[i], want)
		}
	}
}

func failureListsSelect(t *testing.T, d db.DB) {
	wantFailures(t, d, animalstore.FailureQuery{})
	mustAddFailures(t, d, manyFailures, failureOf(1, 1, noSuchPet), failureOf(2, 2, noSuchPet), failureOf(1, 3, noSuchRoute))
	mustAddFailures(t, d, manyFailures, failureOf(1, 200, noSuchPet), failureOf(2, 199, noSuchRoute)) // out of order
	at := func(n int64) animalstore.Time { return failureOf(0, n, "").Time }
	const one, two, three, fourth, fifth = "1 pet_not_found 1", "2 pet_not_found 2", "1 route_not_found 3", "1 pet_not_found 200", "2 route_not_found 199"
	for _, test := range []struct {
		q    animalstore.FailureQuery
		want []string
	}{
		{animalstore.FailureQuery{}, []string{fifth, fourth, three, two, one}},
		{animalstore.FailureQuery{KeyID: 1}, []string{fourth, three, one}},
		{animalstore.FailureQuery{KeyID: 3}, nil},
		{animalstore.FailureQuery{Code: noSuchPet}, []string{fourth, two, one}},
		{animalstore.FailureQuery{KeyID: 1, Code: noSuchPet}, []string{fourth, one}},
		{animalstore.FailureQuery{RequestID: "r3"}, []string{three}},
		{animalstore.FailureQuery{RequestID: "R3"}, nil},
		{animalstore.FailureQuery{RequestID: "r3", Code: noSuchPet}, nil},
		{animalstore.FailureQuery{RequestID: "r3", KeyID: 1}, []string{three}},
		{animalstore.FailureQuery{RequestID: "r3", KeyID: 2}, nil},
		{animalstore.FailureQuery{Since: at(2)}, []string{fifth, fourth, three, two}},
		{animalstore.FailureQuery{Since: at(200)}, []string{fourth}},
		{animalstore.FailureQuery{Since: at(201)}, nil},
		{animalstore.FailureQuery{Since: at(3), KeyID: 1}, []string{fourth, three}},
		{animalstore.FailureQuery{Since: at(199), Code: noSuchRoute}, []string{fifth}},
		{animalstore.FailureQuery{Since: at(4), RequestID: "r3"}, nil},
	} {
		wantFailures(t, d, test.q, test.want...)
	}
	// A page continues before the last of the one before, with every filter.
	for _, q := range []animalstore.FailureQuery{{}, {KeyID: 1}, {Code: noSuchPet}, {KeyID: 1, Code: noSuchPet}, {Since: at(2)}} {
		all := failuresOf(t, d, q)
		for i := range all {
			page, err := d.Failures(t.Context(), q, db.Page{After: all[i].ID, Limit: 2})
			if err != nil {
				t.Fatal(err)
			}
			if want := all[i+1 : min(i+3, len(all))]; !slices.EqualFunc(page, want, func(a, b animalstore.Failure) bool { return a.ID == b.ID }) {
				t.Errorf("Failures(%+v) after %d: got %+v, want %+v", q, all[i].ID, page, want)
			}
		}
	}
}

func failuresAreLimited(t *testing.T, d db.DB) {
	// One a second of a key and code, from whichever server.
	again := failureOf(1, 1, noSuchPet)
	again.Time, again.DurationMs = animalstore.At(again.Time.Add(999*time.Millisecond)), 99
	mustAddFailures(t, d, manyFailures, failureOf(1, 1, noSuchPet), again, failureOf(2, 1, noSuchPet))
	mustAddFailures(t, d, manyFailures, again, failureOf(1, 1, noSuchRoute))
	wantFailures(t, d, animalstore.FailureQuery{}, "1 route_not_found 1", "2 pet_not_found 1", "1 pet_not_found 1")

	// The newest of a key.
	few := db.FailureLimits{PerKey: 3, Total: 1 << 20}
	for n := range int64(5) {
		mustAddFailures(t, d, few, failureOf(1, 10+n, noSuchPet))
	}
	wantFailures(t, d, animalstore.FailureQuery{}, "1 pet_not_found 14", "1 pet_not_found 13", "1 pet_not_found 12", "2 pet_not_found 1")

	// The newest of the store, counted exactly: four are there.
	all := db.FailureLimits{PerKey: 3, Total: 5}
	mustAddFailures(t, d, all, failureOf(3, 20, noSuchPet))
	wantFailures(t, d, animalstore.FailureQuery{KeyID: 2}, "2 pet_not_found 1")
	mustAddFailures(t, d, all, failureOf(4, 21, noSuchPet), failureOf(5, 21, noSuchPet))
	wantFailures(t, d, animalstore.FailureQuery{}, "5 pet_not_found 21", "4 pet_not_found 21", "3 pet_not_found 20", "1 pet_not_found 14", "1 pet_not_found 13")

	// What is dropped makes room.
	if dropped, err := d.DropFailures(t.Context(), failureOf(0, 20, "").Time, 100); err != nil || dropped != 2 {
		t.Errorf("DropFailures = %d, %v, want 2", dropped, err)
	}
	mustAddFailures(t, d, all, failureOf(6, 22, noSuchPet), failureOf(7, 22, noSuchPet))
	if got := failuresOf(t, d, animalstore.FailureQuery{}); len(got) != 5 {
		t.Errorf("got %+v, want 5", got)
	}
}

func failuresAtOnce(t *testing.T, d db.DB) {
	limits := db.FailureLimits{PerKey: 50, Total: 120}
	together(t, 8, func(server int) error {
		for n := range int64(20) {
			batch := []animalstore.Failure{failureOf(1, n, noSuchPet), failureOf(1, n, noSuchRoute), failureOf(2, n, noSuchRoute), failureOf(10+int64(server), n, noSuchPet)}
			if err := d.AddFailures(t.Context(), batch, limits); err != nil {
				return err
			}
		}
		return nil
	})
	perKey := map[int64]int{}
	all := failuresOf(t, d, animalstore.FailureQuery{})
	for _, f := range all {
		perKey[f.KeyID]++
	}
	if len(all) != limits.Total || perKey[1] > 40 || perKey[2] > 20 {
		t.Errorf("got %d failures, by key %v, want %d, and those of keys 1 and 2 once", len(all), perKey, limits.Total)
	}
	// The count is still right.
	limits.Total = 119
	mustAddFailures(t, d, limits, failureOf(3, 1, noSuchPet))
	if all := failuresOf(t, d, animalstore.FailureQuery{}); len(all) != limits.Total {
		t.Errorf("got %d failures, want %d", len(all), limits.Total)
	}
}

func failuresAreFollowed(t *testing.T, d db.DB) {
	const writers, batches = 8, 20
	seen, newest := map[int64]bool{}, int64(0)
	follow := func() error {
		all, err := d.Failures(t.Context(), animalstore.FailureQuery{}, db.Page{Limit: 1000})
		for _, f := range slices.Backward(all) {
			if f.ID > newest {
				seen[f.ID], newest = true, f.ID
			}
		}
		return err
	}
	var writing atomic.Int32
	writing.Store(writers)
	together(t, writers+1, func(i int) error {
		if i == writers {
			for writing.Load() > 0 {
				if err := follow(); err != nil {
					return err
				}
			}
			return nil
		}
		defer writing.Add(-1)
		for n := range int64(batches) {
			if err := d.AddFailures(t.Context(), []animalstore.Failure{failureOf(int64(i+1), n, noSuchPet)}, manyFailures); err != nil {
				return err
			}
		}
		return nil
	})
	if err := follow(); err != nil || len(seen) != writers*batches {
		t.Errorf("a follower saw %d failures, %v, want all %d", len(seen), err, writers*batches)
	}
}

func dropsFailures(t *testing.T, d db.DB) {
	for n := range int64(5) {
		mustAddFailures(t, d, manyFailures, failureOf(1, n, noSuchPet))
	}
	newest := failuresOf(t, d, animalstore.FailureQuery{})[0].ID
	before := failureOf(0, 4, "").Time
	for i, want := range []int{3, 1, 0} {
		if dropped, err := d.DropFailures(t.Context(), before, 3); err != nil || dropped != want {
			t.Errorf("%d: DropFailures = %d, %v, want %d", i, dropped, err, want)
		}
		if i == 0 { // the oldest are gone
			wantFailures(t, d, animalstore.FailureQuery{}, "1 pet_not_found 4", "1 pet_not_found 3")
		}
	}
	wantFailures(t, d, animalstore.FailureQuery{}, "1 pet_not_found 4")
	if _, err := d.DropFailures(t.Context(), later, 3); err != nil {
		t.Fatal(err)
	}
	// Ids aren't used again, so followers don't miss anything.
	mustAddFailures(t, d, manyFailures, failureOf(1, 5, noSuchPet))
	if got := failuresOf(t, d, animalstore.FailureQuery{}); len(got) != 1 || got[0].ID <= newest {
		t.Errorf("got %+v, want one with an id above %d", got, newest)
	}
	if err := d.AddFailures(cancelled(t), []animalstore.Failure{failureOf(2, 1, noSuchPet)}, manyFailures); err == nil {
		t.Error("AddFailures with an ended context: got nil, want an error")
	} else if got := failuresOf(t, d, animalstore.FailureQuery{KeyID: 2}); len(got) != 0 || errors.Is(err, db.ErrOutcomeUnknown) {
		t.Errorf("after %v, got %+v, want nothing stored", err, got)
	}
}
