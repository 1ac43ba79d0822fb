package api_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"animalstore"
)

// TestFindByName: pets are found by the beginning of their names, sorted by name, with and
// without other filters.
func TestFindByName(t *testing.T) {
	s := start(t)
	var pets []animalstore.NewPet
	for i, name := range []string{"Rex", "max", "REXINE", "Straße", "rex", "STRASSE", "Zoe\u0308", "ZOË", "Rëx", "İzmir", "Σίσυφος", "100% Rex & co"} {
		pets = append(pets, animalstore.NewPet{Name: name, CategoryID: int64(i % 2), Status: animalstore.PetStatuses[i%3]})
	}
	s.add(t, pets...)
	for query, want := range map[string][]int64{
		"name=rex": {1, 5, 3}, "name=REX": {1, 5, 3}, "name=rex&limit=1": {1, 5, 3}, "name=r": {1, 5, 3, 9}, "name=strass": {4, 6}, "name=STRA%C3%9FE": {4, 6},
		"name=zo%C3%AB": {7, 8}, "name=zo%C3%AB&limit=1": {7, 8}, "name=zoe": {}, "name=i": {10}, "name=%CF%83%CE%AF%CF%83%CF%85%CF%86%CE%BF%CF%83": {11}, "name=100%25+rex+%26": {12},
		"name=nobody": {}, "name=%20": {}, "name=rex&status=available": {1}, "name=rex&status=sold&limit=1": {3}, "name=rex&categoryId=0": {1, 5, 3}, "name=rex&categoryId=1": {},
		"name=r&categoryId=0&status=pending&limit=1": {5}, "name=" + strings.Repeat("x", 100): {}, "name=" + strings.Repeat("%F0%9F%90%B6", 100): {},
		"name=%F4%8F%BF%BF": {}, "name=%ED%9F%BF": {},
	} {
		pages, err := s.walk(t.Context(), "/v1/pets?"+query)
		if got := ids(slices.Concat(pages...)); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %d, %v, want %d", query, got, err, want)
		}
	}
}

// TestNamesThatAreRefused: a name that can't be searched for is 400 and named.
func TestNamesThatAreRefused(t *testing.T) {
	s := start(t)
	s.add(t, some(3)...)
	for query, want := range map[string]string{
		"name=": "name", "name": "name", "name=" + strings.Repeat("x", 101): "name",
		"name=" + strings.Repeat("%F0%9F%90%B6", 101): "name", "name=a%00": "name", "name=%FF": "name", "name=%ED%A0%80": "name",
		"name=a&name=b": "name", "name=a&id=1": "name", "name=a&status=x": "status", "name=a&categoryId=x": "categoryId", "name=a&limit=0": "limit",
	} {
		got := s.do(t, bad(call{path: "/v1/pets?" + query}))
		got.want(t, 400, animalstore.InvalidParameter)
		got.wantMessage(t, want)
	}
}

// TestNameCursors: a cursor carries its name and other filters, continues after changes of
// the pet it was made from, and doesn't fit other lists.
func TestNameCursors(t *testing.T) {
	s := start(t)
	for i := range 6 {
		s.add(t, animalstore.NewPet{Name: fmt.Sprintf("Rex %d|%%&", i), CategoryID: 1})
	}
	longest := s.add(t, animalstore.NewPet{Name: strings.Repeat("🐶", 1024), CategoryID: 1}, animalstore.NewPet{Name: strings.Repeat("🐶", 1024), CategoryID: 1})
	cursor := s.cursorOf(t, "/v1/pets?name=REX&limit=2")
	s.do(t, call{method: "DELETE", path: "/v1/pets/2"})
	s.do(t, call{method: "PATCH", path: "/v1/pets/1", body: `{"name":"Zoe"}`})
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
	pages, err := s.walk(t.Context(), "/v1/pets?limit=1&status=available&categoryId=1&name="+url.QueryEscape(strings.Repeat("🐶", 100)))
	if err != nil || !slices.Equal(slices.Concat(pages...), longest) {
		t.Errorf("got %d pages, %v, want both pets with long names", len(pages), err)
	}
}

// TestShortPages: a request examines a limited number of pets, and the pages lead on to
// the end, also if none matches.
func TestShortPages(t *testing.T) {
	s := start(t)
	var pets []animalstore.NewPet
	for range 2100 {
		pets = append(pets, animalstore.NewPet{Name: "Rex", CategoryID: 1})
	}
	pets = append(pets, animalstore.NewPet{Name: "Rexi", CategoryID: 1, Status: animalstore.PetSold})
	added := s.add(t, pets...)
	first := s.do(t, call{path: "/v1/pets?name=rex&status=sold"})
	_, next := first.links(t)
	if string(first.body) != "[]\n" || next == "" {
		t.Fatalf("got %s and next %q, want an empty page that leads on", first.body, next)
	}
	second := s.do(t, call{path: next})
	if _, next := second.links(t); !slices.Equal(second.pets(t), added[2100:]) || next != "" {
		t.Errorf("got %s and next %q, want the last pet and no next", second.body, next)
	}
	etag := first.header.Get("ETag")
	s.do(t, call{path: "/v1/pets?name=rex&status=sold", header: http.Header{"If-None-Match": {etag}}}).want(t, 304, "")
}
