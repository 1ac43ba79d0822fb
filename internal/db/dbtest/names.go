package dbtest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/testenv"
)

// listedName is an entry of a pet's name in the plain model of the list by name.
type listedName struct {
	entry string
	pet   animalstore.Pet
}

func (n listedName) position() db.NamePosition { return db.NamePosition{Entry: n.entry, ID: n.pet.ID} }

// entriesOf returns what is left of a name from each of its first four words on.
func entriesOf(name string) (entries []string) {
	words := strings.FieldsFunc(db.FoldName(name), func(c rune) bool { return unicode.IsSpace(c) || slices.Contains([]rune("-_/.,()"), c) })
	for i := range words[:min(len(words), 4)] {
		entry := []rune(strings.Join(words[i:], " "))
		entries = append(entries, string(entry[:min(len(entry), 300)]))
	}
	return entries
}

// nameList returns the entries after q's position that begin with its prefix, in order.
func nameList(all []animalstore.Pet, q db.NameQuery) (list []listedName) {
	for _, p := range all {
		for _, entry := range entriesOf(p.Name) {
			n := listedName{entry, p}
			if strings.HasPrefix(entry, q.Prefix) && (q.After.ID == 0 || compareNames(n, listedName{q.After.Entry, animalstore.Pet{ID: q.After.ID}}) > 0) {
				list = append(list, n)
			}
		}
	}
	slices.SortFunc(list, compareNames)
	return slices.Compact(list)
}

func compareNames(a, b listedName) int {
	return cmp.Or(strings.Compare(a.entry, b.entry), cmp.Compare(a.pet.ID, b.pet.ID))
}

// isSmallest reports whether no smaller entry of the pet begins with the prefix.
func (n listedName) isSmallest(prefix string) bool {
	return !slices.ContainsFunc(entriesOf(n.pet.Name), func(other string) bool { return other < n.entry && strings.HasPrefix(other, prefix) })
}

// namePage returns the page of q.
func namePage(all []animalstore.Pet, q db.NameQuery) (page []animalstore.Pet, next *db.NamePosition) {
	page = []animalstore.Pet{}
	var last db.NamePosition
	for i, n := range nameList(all, q) {
		if n.isSmallest(q.Prefix) && q.Matches(n.pet.CategoryID, n.pet.Status) {
			if len(page) == q.Limit {
				return page, &last
			}
			page, last = append(page, n.pet), n.position()
		}
		if i+1 == db.MaxNamesRead {
			return page, new(n.position())
		}
	}
	return page, nil
}

// named returns the pets that a query finds among all, in order.
func named(all []animalstore.Pet, q db.NameQuery) (found []animalstore.Pet) {
	for _, n := range nameList(all, q) {
		if n.isSmallest(q.Prefix) && q.Matches(n.pet.CategoryID, n.pet.Status) {
			found = append(found, n.pet)
		}
	}
	return found
}

// wantNamePage fails the test unless the page of q is as in the model. It returns the page.
func wantNamePage(t *testing.T, d db.DB, all []animalstore.Pet, q db.NameQuery) (page []animalstore.Pet, next *db.NamePosition) {
	t.Helper()
	page, next, err := d.PetsByName(t.Context(), q)
	want, wantNext := namePage(all, q)
	if err != nil || !slices.Equal(page, want) || (next == nil) != (wantNext == nil) || next != nil && *next != *wantNext {
		t.Fatalf("PetsByName(%+v): %v\ngot  %+v, next %+v\nwant %+v, next %+v", q, err, page, next, want, wantNext)
	}
	return page, next
}

// namesAreRead: no page looks at more than MaxNamesRead entries, and its position is the
// last one it looked at. Entries that are skipped count, too.
func namesAreRead(t *testing.T, d db.DB) {
	const pets = 2*db.MaxNamesRead + 1
	rows := db.Rows{Categories: []animalstore.Category{{ID: 1}, {ID: 2}}}
	for i := range pets { // half of them with equal names
		p := animalstore.Pet{ID: int64(i + 1), Name: fmt.Sprintf("Rex %05d", max(i, pets/2)), CategoryID: 1, Status: animalstore.PetAvailable}
		switch {
		case i == db.MaxNamesRead:
			p.Status = animalstore.PetSold
		case i%10 == 0:
			p.Name = "Rey-" + p.Name
		case i%10 == 1:
			p.Name += " Rex"
		}
		rows.Pets = append(rows.Pets, p)
	}
	last, _ := mustReserve(t, d, pets, 0)
	rows.Shift(last, 0)
	mustLoad(t, d, rows)
	list := nameList(rows.Pets, db.NameQuery{Prefix: "re"})
	if len(list) < pets+pets/10 {
		t.Fatalf("only %d entries begin like that, want some pets with two", len(list))
	}
	first, second := list[db.MaxNamesRead-1].position(), list[2*db.MaxNamesRead-1].position()
	sold, rare := animalstore.PetSold, new(int64(2))
	for _, test := range []struct {
		q    db.NameQuery
		next *db.NamePosition // if it is one of these
	}{
		{q: db.NameQuery{Limit: 100}},
		{q: db.NameQuery{Limit: 100, After: list[5].position()}},
		{q: db.NameQuery{Limit: 1, After: first}},
		{db.NameQuery{PetQuery: animalstore.PetQuery{Status: animalstore.PetPending}, Limit: 100}, &first},
		{db.NameQuery{PetQuery: animalstore.PetQuery{Status: sold, CategoryID: rare}, Limit: 100}, &first},
		{db.NameQuery{PetQuery: animalstore.PetQuery{CategoryID: rare}, Limit: 100, After: first}, &second},
		{q: db.NameQuery{PetQuery: animalstore.PetQuery{Status: sold}, Limit: 100, After: first}},
		{q: db.NameQuery{PetQuery: animalstore.PetQuery{Status: sold}, Limit: 1, After: list[5].position()}},
		{q: db.NameQuery{PetQuery: animalstore.PetQuery{Status: sold}, Limit: 100, After: second}},
		{q: db.NameQuery{Limit: 1, After: second}},
	} {
		test.q.Prefix = "re"
		_, next := wantNamePage(t, d, rows.Pets, test.q)
		if test.next != nil && (next == nil || *next != *test.next) {
			t.Errorf("PetsByName(%+v): next is %+v, want %+v", test.q, next, *test.next)
		}
	}
}

// nameParts are what random names are made of: many scripts, letters whose cases aren't one
// to one, accents in both encodings, and characters that sort or compare in special ways.
var nameParts = []string{
	"a", "A", "rex", "REX", "ß", "ẞ", "ss", "İ", "i", "I", "ı", "i\u0307", "ς", "σ", "Σ", "ΐ", "ᾳ", "ΑΙ", "ﬁ", "fi", "ŉ", "և", "é", "e\u0301", "É", "\u212B",
	"\u0301", "\u0323\u0307", "ж", "Ж", "Ꭰ", "ꭰ", "א", "क़", "क\u093C", "강", "\u1100\u1161\u11A8", "か\u3099", "犬", "𐐀", "𐐨", "🐕\u200D🦺", "%", "_", "\\", "'", "|", " ", " ", "-", "\u3000", "\u00A0", " rex", ".a", "(", ")", ", ", "/", "...", "__",
	strings.Repeat("🐶", 150), "\uFFFF", "\uD7FF", "\uE000", "\U00010000", "\U0010FFFF",
}

// findsRandomNames walks through lists by name in random stores, while pets are renamed,
// added and removed, and compares each page with the model, so that all engines have the
// same. A pet that keeps its name and isn't removed is listed exactly once.
func findsRandomNames(t *testing.T, d db.DB) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	store := namedStore{t: t, d: d, random: random, changed: map[int64]bool{}}
	for range testenv.Count(200, 10_000) {
		for len(store.pets) > 0 && random.IntN(20) == 0 {
			store.remove()
		}
		for len(store.pets) < 12 || random.IntN(3) > 0 && len(store.pets) < 60 {
			store.add()
		}
		q := db.NameQuery{Prefix: db.FoldName(randomName(random, 1+random.IntN(2))), Limit: 1 + random.IntN(6)}
		entries := entriesOf(store.pets[random.IntN(len(store.pets))].Name)
		if len(entries) > 0 && random.IntN(2) == 0 { // the beginning of an entry
			entry := []rune(entries[random.IntN(len(entries))])
			q.Prefix = string(entry[:1+random.IntN(min(len(entry), 4))])
		}
		if q.Prefix == "" { // only separators
			q.Prefix = "x"
		}
		if random.IntN(4) == 0 {
			q.Status = animalstore.PetSold
		}
		if random.IntN(4) == 0 {
			q.CategoryID = new(int64(2))
		}
		store.walk(q)
	}
}

// namedStore is a store and the model of its pets.
type namedStore struct {
	t       *testing.T
	d       db.DB
	random  *rand.Rand
	pets    []animalstore.Pet
	changed map[int64]bool // renamed, added or removed during a walk
}

func (s *namedStore) add() {
	p := animalstore.NewPet{Name: petName(s.random), CategoryID: 1 + s.random.Int64N(2)}
	if s.random.IntN(4) == 0 {
		p.Status = animalstore.PetSold
	}
	pet := mustCreatePet(s.t, s.d, p)
	s.pets, s.changed[pet.ID] = append(s.pets, pet), true
}

func (s *namedStore) remove() {
	i := s.random.IntN(len(s.pets))
	mustDeletePet(s.t, s.d, s.pets[i].ID)
	s.changed[s.pets[i].ID] = true
	s.pets = slices.Delete(s.pets, i, i+1)
}

func (s *namedStore) rename() {
	i := s.random.IntN(len(s.pets))
	s.pets[i] = mustUpdatePet(s.t, s.d, s.pets[i].ID, func(p *animalstore.Pet) { p.Name = petName(s.random) })
	s.changed[s.pets[i].ID] = true
}

// walk reads all pages of a query and changes the store in between.
func (s *namedStore) walk(q db.NameQuery) {
	s.t.Helper()
	s.changed = map[int64]bool{}
	query, want := q, named(s.pets, q)
	var got []animalstore.Pet
	for more := true; more; {
		page, next := wantNamePage(s.t, s.d, s.pets, q)
		got = append(got, page...)
		if more = next != nil; more {
			q.After = *next
			for _, change := range []func(){s.add, s.remove, s.rename} {
				if s.random.IntN(3) == 0 && len(s.pets) > 1 {
					change()
				}
			}
		}
	}
	unchanged := func(pets []animalstore.Pet) []animalstore.Pet {
		return slices.DeleteFunc(slices.Clone(pets), func(p animalstore.Pet) bool { return s.changed[p.ID] })
	}
	if got, want := unchanged(got), unchanged(want); !slices.Equal(got, want) {
		s.t.Fatalf("a walk through %+v: of the pets that stayed as they were\ngot  %+v\nwant %+v", query, got, want)
	}
}

// petName returns a name that isn't blank. A few are separators alone, which have no entries.
func petName(random *rand.Rand) string {
	if random.IntN(8) == 0 {
		return "(-) ..."
	}
	return randomName(random, 1+random.IntN(6)) + "x"
}

func randomName(random *rand.Rand, parts int) (name string) {
	for range parts {
		name += nameParts[random.IntN(len(nameParts))]
	}
	return name
}
