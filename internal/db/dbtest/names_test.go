//go:build unix

package dbtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/db/postgres"
	"animalstore/internal/db/postgres/pgtest"
	"animalstore/internal/db/sqlite"
	"animalstore/internal/testenv"
)

// nameParts are what random names are made of: many scripts, letters whose cases aren't one
// to one, accents in both encodings, and characters that sort or compare in special ways.
var nameParts = []string{
	"a", "A", "b", "rex", "REX", "ß", "ẞ", "ss", "SS", "İ", "i", "I", "ı", "i\u0307", "ς", "σ", "Σ", "ΐ", "ΐ", "ᾳ", "ΑΙ", "ﬁ", "fi", "ŉ", "ǰ", "և",
	"é", "e\u0301", "É", "Å", "\u212B", "a\u030A", "\u0301", "\u0323\u0307", "\u0307\u0323", "q\u0307\u0323", "ж", "Ж", "ქ", "Ქ", "Ꭰ", "ꭰ", "ᏸ", "Ᏸ",
	"א", "שּׁ", "ب", "क़", "क\u093C", "ไ", "강", "\u1100\u1161\u11A8", "タ", "た", "か\u3099", "犬", "𐐀", "𐐨", "🐶", "🐕\u200D🦺", "%", "_", "\\", "'", "|", " ", "\t",
	"\uFFFF", "\uD7FF", "\uE000", "\U00010000", "\U0010FFFF", "\u034F",
}

func randomName(random *rand.Rand, most int) string {
	var b strings.Builder
	for range 1 + random.IntN(most) {
		b.WriteString(nameParts[random.IntN(len(nameParts))])
	}
	if random.IntN(30) == 0 {
		b.WriteString(strings.Repeat(nameParts[random.IntN(len(nameParts))], 150))
	}
	return b.String()
}

// TestEnginesFindTheSameNames: in random stores, both engines return the same pages for
// random names, while pets are added, renamed and removed between the pages. Each pet that
// keeps its name and stays appears exactly once.
func TestEnginesFindTheSameNames(t *testing.T) {
	file, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "store.db"), sqlite.Options{Serve: true, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	server, err := postgres.Open(t.Context(), pgtest.Shared(t).NewDatabase(t, ""), postgres.Options{Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	found := 0
	for round := range testenv.Count(60, 10_000) {
		seed := rand.Uint64()
		n, err := compareNameWalks(t.Context(), [2]db.DB{file, server}, rand.New(rand.NewPCG(seed, uint64(round))))
		if err != nil {
			t.Fatalf("round %d with seed %d: %v", round, seed, err)
		}
		found += n
	}
	if found == 0 {
		t.Error("no query found a pet")
	}
}

// twin is a pet that both engines have, under different ids.
type twin struct {
	ids     [2]int64
	name    string
	touched bool
}

// nameStore is the same random store in both engines.
type nameStore struct {
	engines [2]db.DB
	random  *rand.Rand
	twins   []twin
}

// compareNameWalks fills a store, looks for a name in it, and removes all pets.
func compareNameWalks(ctx context.Context, engines [2]db.DB, random *rand.Rand) (found int, err error) {
	s := &nameStore{engines: engines, random: random}
	for range 1 + random.IntN(40) {
		if err := s.create(ctx); err != nil {
			return 0, err
		}
	}
	before := slices.Clone(s.twins)
	q := db.NameQuery{Prefix: db.FoldName(randomName(random, 2)), Limit: 1 + random.IntN(6)}
	if random.IntN(3) > 0 { // the beginning of a name that exists
		name := []rune(s.twins[random.IntN(len(s.twins))].name)
		q.Prefix = db.FoldName(string(name[:1+random.IntN(min(len(name), 100))]))
	}
	if random.IntN(2) == 0 {
		q.CategoryID = new(int64(random.IntN(2)))
	}
	seen, err := s.walk(ctx, q)
	if err != nil {
		return 0, fmt.Errorf("%+v: %w", q, err)
	}
	for place, tw := range before {
		// Its category doesn't change, so it matches throughout or never.
		matches := strings.HasPrefix(db.FoldName(tw.name), q.Prefix) && q.Matches(int64(place%2), animalstore.PetAvailable)
		switch n := seen[place]; {
		case s.twins[place].touched:
		case matches && n != 1, !matches && n != 0:
			return 0, fmt.Errorf("%+v: pet %q was seen %d times", q, tw.name, n)
		case matches:
			found++
		}
	}
	return found, s.removeAll(ctx)
}

// walk pages through both lists and returns how often it saw each pet, by its place.
func (s *nameStore) walk(ctx context.Context, q db.NameQuery) (seen map[int]int, err error) {
	seen = map[int]int{}
	queries := [2]db.NameQuery{q, q}
	for {
		var pages [2][]int
		var nexts [2]*db.NamePosition
		for i, engine := range s.engines {
			pets, next, err := engine.PetsByName(ctx, queries[i])
			if err != nil {
				return nil, err
			}
			for _, p := range pets {
				place := slices.IndexFunc(s.twins, func(tw twin) bool { return tw.ids[i] == p.ID })
				if place < 0 || s.twins[place].name != p.Name {
					return nil, fmt.Errorf("found %+v, which isn't stored like this", p)
				}
				pages[i] = append(pages[i], place)
			}
			nexts[i] = next
		}
		if !slices.Equal(pages[0], pages[1]) || (nexts[0] == nil) != (nexts[1] == nil) || nexts[0] != nil && nexts[0].Folded != nexts[1].Folded {
			return nil, fmt.Errorf("SQLite returned %v and next %v, PostgreSQL %v and %v", pages[0], nexts[0], pages[1], nexts[1])
		}
		for _, place := range pages[0] {
			seen[place]++
		}
		if nexts[0] == nil {
			return seen, nil
		}
		queries[0].After, queries[1].After = *nexts[0], *nexts[1]
		if err := s.change(ctx); err != nil {
			return nil, err
		}
	}
}

func (s *nameStore) create(ctx context.Context) error {
	tw := twin{name: randomName(s.random, 4)}
	if len(s.twins) > 0 && s.random.IntN(4) == 0 {
		tw.name = s.twins[s.random.IntN(len(s.twins))].name
	}
	p := animalstore.NewPet{Name: tw.name, CategoryID: int64(len(s.twins) % 2)}
	if p.Validate() != nil {
		p.Name += "x"
		tw.name = p.Name
	}
	for i, engine := range s.engines {
		pet, _, err := engine.CreatePet(ctx, p, nil)
		if err != nil {
			return err
		}
		tw.ids[i] = pet.ID
	}
	s.twins = append(s.twins, tw)
	return nil
}

// change adds, renames or removes a pet.
func (s *nameStore) change(ctx context.Context) error {
	what := s.random.IntN(3)
	if what == 0 {
		return s.create(ctx)
	}
	tw := &s.twins[s.random.IntN(len(s.twins))]
	if tw.ids[0] == 0 { // removed before
		return nil
	}
	tw.touched = true
	if what == 1 {
		tw.name = randomName(s.random, 4) + "x"
	}
	for i, engine := range s.engines {
		var err error
		if what == 1 {
			_, err = engine.UpdatePet(ctx, tw.ids[i], func(p *animalstore.Pet, _ bool) error { p.Name = tw.name; return nil })
		} else {
			err = engine.DeletePet(ctx, tw.ids[i], allow)
			tw.ids[i] = 0
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *nameStore) removeAll(ctx context.Context) error {
	for _, tw := range s.twins {
		for i, engine := range s.engines {
			if tw.ids[i] != 0 {
				if err := engine.DeletePet(ctx, tw.ids[i], allow); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
