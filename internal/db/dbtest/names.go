package dbtest

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/testenv"
)

// nameWalk pages through a list by name and returns all of it. It calls between, unless
// nil, after each page but the last.
func nameWalk(ctx context.Context, d db.DB, q db.NameQuery, between func(page []animalstore.Pet) error) (all []animalstore.Pet, err error) {
	for {
		page, next, err := d.PetsByName(ctx, q)
		if err != nil {
			return nil, err
		}
		if all = append(all, page...); next == nil {
			return all, nil
		}
		if len(page) > q.Limit {
			return nil, fmt.Errorf("PetsByName(%+v) returned %d pets", q, len(page))
		}
		q.After = *next
		if between != nil {
			if err := between(page); err != nil {
				return nil, err
			}
		}
	}
}

func namePosition(p animalstore.Pet) db.NamePosition {
	return db.NamePosition{Folded: db.FoldName(p.Name), ID: p.ID}
}

func compareNames(a, b animalstore.Pet) int {
	return cmp.Or(strings.Compare(db.FoldName(a.Name), db.FoldName(b.Name)), cmp.Compare(a.ID, b.ID))
}

// named returns the pets that a query finds among all, in order.
func named(all []animalstore.Pet, q db.NameQuery) []animalstore.Pet {
	found := slices.DeleteFunc(slices.Clone(all), func(p animalstore.Pet) bool {
		return !strings.HasPrefix(db.FoldName(p.Name), q.Prefix) || !q.Matches(p.CategoryID, p.Status)
	})
	slices.SortFunc(found, compareNames)
	return found
}

// findsByName: a pet is found by the beginning of its name, whatever its case and the way
// its accents are encoded.
func findsByName(t *testing.T, d db.DB) {
	var all []animalstore.Pet
	for i, name := range []string{
		"Rex", "REXINE", "rex", "Max Rex", "R", "Straße", "STRASSEN", "Strasbourg", "İzmir", "izmir", "Izmir",
		"Σίσυφος", "ΣΊΣΥΦΟΣ", "Zoë", "ZOE\u0308", "zoe", " Rex", "100%", "100_", "たま", "タマ", "강아지", "🐶", "a\uFFFF", "a\U00010000", "\U0010FFFF",
		strings.Repeat("ß", 1024), strings.Repeat("x", 1024), strings.Repeat("x", 1024), strings.Repeat("🐶", 1024),
	} {
		all = append(all, mustCreatePet(t, d, animalstore.NewPet{Name: name, CategoryID: int64(i % 2)}))
	}
	for begin, want := range map[string]string{
		"rex": "Rex|rex|REXINE", "REXI": "REXINE", "strass": "Straße|STRASSEN|", "straß": "Straße|STRASSEN", "σίσυφοσ": "Σίσυφος|ΣΊΣΥΦΟΣ",
		"i": "izmir|Izmir|İzmir", "zoë": "Zoë|ZOE\u0308", "zo": "zoe|Zoë|ZOE\u0308", "100%": "100%", "100_": "100_", "🐶x": "", "\U0010FFFF": "\U0010FFFF",
		"a": "a\uFFFF|a\U00010000", "%": "", "nobody": "",
	} {
		q := db.NameQuery{Prefix: db.FoldName(begin), Limit: 2}
		pets, err := nameWalk(t.Context(), d, q, nil)
		var names []string
		for _, p := range pets {
			names = append(names, p.Name)
		}
		if got := strings.Join(names, "|"); err != nil || got != strings.TrimSuffix(want, "|") {
			t.Errorf("names that begin with %q: got %q, %v, want %q", begin, got, err, want)
		}
	}
	for _, p := range all {
		for _, q := range []db.NameQuery{{}, {Status: animalstore.PetAvailable}, {Status: animalstore.PetSold}, {CategoryID: new(int64(1))}} {
			q.Prefix, q.Limit = db.FoldName(p.Name), 1
			got, err := nameWalk(t.Context(), d, q, nil)
			if want := named(all, q); err != nil || !slices.Equal(got, want) {
				t.Errorf("PetsByName(%+v): %v\ngot  %+v\nwant %+v", q, err, got, want)
			}
		}
	}
	renamed := mustUpdatePet(t, d, all[0].ID, func(p *animalstore.Pet) { p.Name = "Otto" })
	mustDeletePet(t, d, all[2].ID)
	for begin, want := range map[string][]animalstore.Pet{"REX": {all[1]}, "OT": {renamed}} {
		if got, err := nameWalk(t.Context(), d, db.NameQuery{Prefix: db.FoldName(begin), Limit: 5}, nil); err != nil || !slices.Equal(got, want) {
			t.Errorf("after changes, %q: got %+v, %v, want %+v", begin, got, err, want)
		}
	}
}

// namesAreRead: no page looks at more than MaxNamesRead pets, and its position is the last
// one it looked at.
func namesAreRead(t *testing.T, d db.DB) {
	const pets = 2*db.MaxNamesRead + 1
	rows := db.Rows{Categories: []animalstore.Category{{ID: 1}, {ID: 2}}}
	for i := range pets { // half of them with equal names
		p := animalstore.Pet{ID: int64(i + 1), Name: fmt.Sprintf("Rex %05d", max(i, pets/2)), CategoryID: 1, Status: animalstore.PetAvailable}
		if i == db.MaxNamesRead {
			p.Status = animalstore.PetSold
		}
		rows.Pets = append(rows.Pets, p)
	}
	bulk := d.(db.Bulk)
	last, _, err := bulk.Reserve(t.Context(), pets, 0)
	if err != nil {
		t.Fatal(err)
	}
	rows.Shift(last, 0)
	if err := bulk.Load(t.Context(), rows); err != nil {
		t.Fatal(err)
	}
	all := rows.Pets // in the order of the list
	sold, none, two := all[db.MaxNamesRead:db.MaxNamesRead+1], []animalstore.Pet{}, new(int64(2))
	firstRead, secondRead := namePosition(all[db.MaxNamesRead-1]), namePosition(all[2*db.MaxNamesRead-1])
	for _, test := range []struct {
		q    db.NameQuery
		want []animalstore.Pet
		next *db.NamePosition
	}{
		{db.NameQuery{Limit: 100}, all[:100], new(namePosition(all[99]))},
		{db.NameQuery{Limit: 100, After: firstRead}, all[db.MaxNamesRead:][:100], new(namePosition(all[db.MaxNamesRead+99]))},
		{db.NameQuery{Limit: 100, Status: animalstore.PetSold}, none, &firstRead},
		{db.NameQuery{Limit: 100, Status: animalstore.PetSold, After: firstRead}, sold, &secondRead},
		{db.NameQuery{Limit: 1, Status: animalstore.PetSold, After: namePosition(all[5])}, sold, new(namePosition(all[db.MaxNamesRead+5]))},
		{db.NameQuery{Limit: 100, Status: animalstore.PetSold, After: secondRead}, none, nil},
		{db.NameQuery{Limit: 100, CategoryID: two, Status: animalstore.PetPending}, none, &firstRead},
		{db.NameQuery{Limit: 100, CategoryID: two, After: secondRead}, none, nil},
		{db.NameQuery{Limit: 1, After: secondRead}, all[pets-1:], nil},
	} {
		test.q.Prefix = "rex"
		got, next, err := d.PetsByName(t.Context(), test.q)
		if err != nil || !slices.Equal(got, test.want) {
			t.Errorf("PetsByName(%+v): got %d pets, %v, want %d", test.q, len(got), err, len(test.want))
		}
		if (next == nil) != (test.next == nil) || next != nil && *next != *test.next {
			t.Errorf("PetsByName(%+v): next is %+v, want %+v", test.q, next, test.next)
		}
	}
}

// nameWalksBesideChanges: while others add, rename and remove pets, paging returns each pet
// that keeps its name exactly once.
func nameWalksBesideChanges(t *testing.T, d db.DB) {
	names := []string{"Rex", "rex", "REX II", "Rexi", "Rëx", "Rex the Brave"}
	var still, moving []animalstore.Pet
	for i := range 90 {
		pet := mustCreatePet(t, d, animalstore.NewPet{Name: names[i%len(names)], CategoryID: int64(1 + i%2)})
		if i%3 == 0 {
			moving = append(moving, pet)
		} else {
			still = append(still, pet)
		}
	}
	queries := []db.NameQuery{{}, {CategoryID: new(int64(1))}, {Status: animalstore.PetAvailable}, {Status: animalstore.PetSold}}
	const changers = 3
	var walking atomic.Int64
	walking.Store(int64(len(queries)))
	together(t, changers+len(queries), func(i int) error {
		if i < changers {
			for n := 0; walking.Load() > 0; n++ {
				if err := rename(t.Context(), d, moving, names, rand.New(rand.NewPCG(uint64(i), uint64(n)))); err != nil {
					return err
				}
			}
			return nil
		}
		defer walking.Add(-1)
		for walk := range testenv.Count(3, 200) {
			q := queries[i-changers]
			q.Prefix, q.Limit = "re", 1+walk%7
			got, err := nameWalk(t.Context(), d, q, nil)
			if err != nil {
				return err
			}
			if !slices.IsSortedFunc(got, compareNames) {
				return fmt.Errorf("PetsByName(%+v): not in order: %+v", q, got)
			}
			got = slices.DeleteFunc(got, func(p animalstore.Pet) bool { return !slices.Contains(still, p) })
			if want := named(still, q); !slices.Equal(got, want) {
				return fmt.Errorf("PetsByName(%+v): pets that keep their names seen\n     %+v\nwant %+v", q, got, want)
			}
		}
		return nil
	})
}

// rename renames one of the moving pets, or adds and removes one.
func rename(ctx context.Context, d db.DB, moving []animalstore.Pet, names []string, random *rand.Rand) error {
	name := names[random.IntN(len(names))]
	if random.IntN(4) == 0 {
		pet, _, err := d.CreatePet(ctx, animalstore.NewPet{Name: name, CategoryID: 1}, nil)
		if err != nil {
			return err
		}
		return d.DeletePet(ctx, pet.ID, allow)
	}
	_, err := d.UpdatePet(ctx, moving[random.IntN(len(moving))].ID, func(p *animalstore.Pet, _ bool) error { p.Name = name; return nil })
	return err
}
