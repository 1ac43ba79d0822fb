package api_test

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"animalstore"
	"animalstore/internal/db"
)

// TestFindByName: pets are found by the beginning of their names, sorted by name, with and
// without other filters.
func TestFindByName(t *testing.T) {
	s := start(t)
	for i, name := range []string{"Rex", "max", "REXINE", "Straße", "rex", "Zoe\u0308", "100% Rex & co"} {
		s.add(t, animalstore.NewPet{Name: name, CategoryID: int64(i % 2), Status: animalstore.PetStatuses[i%3]})
	}
	for query, want := range map[string][]int64{
		"name=rex": {1, 5, 7, 3}, "name=REX&limit=1": {1, 5, 7, 3}, "name=STRASS": {4}, "name=zo%C3%AB": {6}, "name=zoe": {}, "name=100%25+rex+%26": {7}, "name=rex+%26": {7},
		"name=rex&status=available": {1, 7}, "name=rex&categoryId=0": {1, 5, 7, 3}, "name=rex&categoryId=1": {}, "name=r&categoryId=0&status=pending&limit=1": {5},
		"name=" + strings.Repeat("%F0%9F%90%B6", 100): {},
	} {
		pages := walk[animalstore.Pet](t, s, "/v1/pets?"+query)
		if got := ids(slices.Concat(pages...)); !slices.Equal(got, want) {
			t.Errorf("%s: got %d, want %d", query, got, want)
		}
	}
}

// TestFindSeparatedWords: how words are separated doesn't matter, neither in names nor in what
// is searched for.
func TestFindSeparatedWords(t *testing.T) {
	s := start(t)
	for _, name := range []string{"Mr. Whiskers", "(Luna)", "Jean-Luc", "a__b", "O'Neil", "...", "Zoë\u00A0\u3000Ann"} {
		s.add(t, animalstore.NewPet{Name: name})
	}
	for name, want := range map[string][]int64{
		"mr whiskers": {1}, "Mr. Whiskers": {1}, "mr.whisk": {1}, " -MR_whiskers. ": {1}, "whiskers": {1}, "mrw": {},
		"luna": {2}, "(luna": {2}, "luna)": {2}, "jean luc": {3}, "jean-l": {3}, "jeanluc": {}, "luc": {3},
		"a b": {4}, "a_b": {4}, "a...b": {4}, "b": {4}, "o'n": {5}, "neil": {}, "o neil": {}, "zoe\u0308 ann": {7}, "ann": {7},
		strings.Repeat(".", 99) + "b": {4},
	} {
		if got := ids(s.do(t, call{path: "/v1/pets?name=" + url.QueryEscape(name)}).pets(t)); !slices.Equal(got, want) {
			t.Errorf("%q: got %d, want %d", name, got, want)
		}
	}
	for _, name := range []string{" ", "...", "-_/.,()", "\u00A0\u3000", strings.Repeat(".", 100)} {
		s.do(t, call{path: "/v1/pets?name=" + url.QueryEscape(name)}).want(t, 400, animalstore.InvalidParameter)
	}
	for _, name := range []string{"", strings.Repeat("a", 101), strings.Repeat(".", 100) + "b"} {
		s.do(t, call{path: "/v1/pets?name=" + url.QueryEscape(name), bad: true}).want(t, 400, animalstore.InvalidParameter)
	}
}

// tiredDB examines a limited number of pets, none of which matches.
type tiredDB struct{ *faultyDB }

func (d tiredDB) PetsByName(ctx context.Context, q db.NameQuery) ([]animalstore.Pet, *db.NamePosition, error) {
	pets, _, err := d.faultyDB.PetsByName(ctx, q)
	if q.After != (db.NamePosition{}) {
		return pets, nil, err
	}
	return nil, &db.NamePosition{Entry: "rex", ID: 1}, err
}

// TestShortPages: a page may be empty although there are more, and still leads on.
func TestShortPages(t *testing.T) {
	s := start(t, func(with *setup) { with.wrap = func(f *faultyDB) db.DB { return tiredDB{f} } })
	s.add(t, animalstore.NewPet{Name: "Rex"}, animalstore.NewPet{Name: "Rexi"})
	first := s.do(t, call{path: "/v1/pets?name=rex"})
	_, next := first.links(t)
	if string(first.body) != "[]\n" || next == "" {
		t.Fatalf("got %s and next %q, want an empty page that leads on", first.body, next)
	}
	second := s.do(t, call{path: next})
	if _, next := second.links(t); !slices.Equal(ids(second.pets(t)), []int64{2}) || next != "" {
		t.Errorf("got %s and next %q, want the last pet and no next", second.body, next)
	}
}

// TestNameCursors: a cursor carries its name and other filters, and doesn't fit other lists.
func TestNameCursors(t *testing.T) {
	s := start(t)
	for i := range 6 {
		s.add(t, animalstore.NewPet{Name: fmt.Sprintf("Rex %d|%%&", i), CategoryID: 1})
	}
	longest := s.add(t, animalstore.NewPet{Name: strings.Repeat("🐶", 1024), CategoryID: 1}, animalstore.NewPet{Name: strings.Repeat("🐶", 1024), CategoryID: 1})
	cursor := s.cursorOf(t, "/v1/pets?name=REX&limit=2")
	for query, want := range map[string][]int64{
		"limit=2&cursor=" + cursor: {3, 4}, "cursor=" + cursor: {3, 4, 5, 6}, "name=REX&cursor=" + cursor: {3, 4, 5, 6},
		"name=rex&cursor=" + cursor: nil, "name=REX&status=sold&cursor=" + cursor: nil, "id=3&cursor=" + cursor: nil,
		"name=REX&cursor=" + s.cursorOf(t, "/v1/pets?limit=2"): nil,
	} {
		got := s.do(t, call{path: "/v1/pets?" + query, bad: want == nil})
		if want == nil {
			got.want(t, 400, animalstore.InvalidCursor)
		} else if found := ids(got.pets(t)); !slices.Equal(found, want) {
			t.Errorf("%s: got %d, want %d", query, found, want)
		}
	}
	// The longest links there are fit into the header of a request and a response.
	pages := walk[animalstore.Pet](t, s, "/v1/pets?limit=1&status=available&categoryId=1&name="+url.QueryEscape(strings.Repeat("🐶", 100)))
	if !slices.Equal(slices.Concat(pages...), longest) {
		t.Errorf("got %d pages, want both pets with long names", len(pages))
	}
}
