package dbtest

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
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
	last, _ := mustReserve(t, d, pets, 0)
	rows.Shift(last, 0)
	mustLoad(t, d, rows)
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

// namePositionsSurvive: paging by name continues after the last pet of a page, even if that
// was renamed or removed, and others come and go.
func namePositionsSurvive(t *testing.T, d db.DB) {
	names := []string{"Rex", "rex", "REX II", "Rexi", "Rëx", "Rex the Brave"}
	var all []animalstore.Pet
	for i := range 18 {
		all = append(all, mustCreatePet(t, d, animalstore.NewPet{Name: names[i%len(names)], CategoryID: 1}))
	}
	q := db.NameQuery{Prefix: "re", Limit: 4}
	pages := 0
	got, err := nameWalk(t.Context(), d, q, func(page []animalstore.Pet) error {
		last := page[len(page)-1].ID
		if pages++; pages%2 == 0 {
			mustDeletePet(t, d, last)
		} else {
			mustUpdatePet(t, d, last, func(p *animalstore.Pet) { p.Name = "Aaron" })
		}
		mustCreatePet(t, d, animalstore.NewPet{Name: "Re", CategoryID: 1}) // sorts before all
		return nil
	})
	if want := named(all, q); err != nil || !slices.Equal(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
}

// nameParts are what random names are made of: many scripts, letters whose cases aren't one
// to one, accents in both encodings, and characters that sort or compare in special ways.
var nameParts = []string{
	"a", "A", "rex", "REX", "ß", "ẞ", "ss", "İ", "i", "I", "ı", "i\u0307", "ς", "σ", "Σ", "ΐ", "ᾳ", "ΑΙ", "ﬁ", "fi", "ŉ", "և", "é", "e\u0301", "É", "\u212B",
	"\u0301", "\u0323\u0307", "ж", "Ж", "Ꭰ", "ꭰ", "א", "क़", "क\u093C", "강", "\u1100\u1161\u11A8", "か\u3099", "犬", "𐐀", "𐐨", "🐕\u200D🦺", "%", "_", "\\", "'", "|", " ",
	"\uFFFF", "\uD7FF", "\uE000", "\U00010000", "\U0010FFFF",
}

// findsRandomNames compares lists by name with what Go finds, so that all engines find the
// same.
func findsRandomNames(t *testing.T, d db.DB) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	randomName := func(parts int) (name string) {
		for range parts {
			name += nameParts[random.IntN(len(nameParts))]
		}
		return name
	}
	var all []animalstore.Pet
	for range testenv.Count(100, 1000) {
		name := randomName(1+random.IntN(4)) + "x" // so that it isn't blank
		all = append(all, mustCreatePet(t, d, animalstore.NewPet{Name: name, CategoryID: 1}))
	}
	for range testenv.Count(200, 10_000) {
		q := db.NameQuery{Prefix: db.FoldName(randomName(1 + random.IntN(2))), Limit: 1 + random.IntN(6)}
		got, err := nameWalk(t.Context(), d, q, nil)
		if want := named(all, q); err != nil || !slices.Equal(got, want) {
			t.Fatalf("seed %d, PetsByName(%+v): %v\ngot  %+v\nwant %+v", seed, q, err, got, want)
		}
	}
}
