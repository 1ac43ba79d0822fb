package api_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"animalstore"
)

// petList is a list of pets with these filters.
type petList struct {
	ids      string
	category string
	status   string
	limit    int
}

func (l petList) path() string {
	q := url.Values{}
	for name, value := range map[string]string{"id": l.ids, "categoryId": l.category, "status": l.status} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if l.limit > 0 {
		q.Set("limit", fmt.Sprint(l.limit))
	}
	return strings.TrimSuffix("/v1/pets?"+q.Encode(), "?")
}

// of is what the list shows of all pets, newest first.
func (l petList) of(all []animalstore.Pet) (shown []animalstore.Pet) {
	for _, p := range all {
		if (l.ids == "" || slices.Contains(strings.Split(l.ids, ","), fmt.Sprint(p.ID))) &&
			(l.category == "" || l.category == fmt.Sprint(p.CategoryID)) && (l.status == "" || l.status == string(p.Status)) {
			shown = append(shown, p)
		}
	}
	return shown
}

// TestFilters goes through every combination of filters, on pages of several
// sizes.
func TestFilters(t *testing.T) {
	s := start(t)
	var pets []animalstore.NewPet
	for i := range 48 {
		pets = append(pets, animalstore.NewPet{Name: fmt.Sprint(i), CategoryID: []int64{1, -1, 1 << 62}[i%3], Status: animalstore.PetStatuses[i/3%3]})
	}
	all := s.add(t, pets...)
	slices.Reverse(all)
	some := "40,3,3,17,18,19,999999,9223372036854775807,48,1,20,21,22"
	for _, wanted := range []string{"", some, "5", "999999"} {
		for _, category := range []string{"", "1", "-1", "4611686018427387904", "0"} {
			for _, status := range []string{"", "available", "sold"} {
				for _, limit := range []int{0, 1, 3, 100} {
					list := petList{wanted, category, status, limit}
					pages, err := s.walk(t.Context(), list.path())
					if err != nil {
						t.Fatalf("%s: %v", list.path(), err)
					}
					if got, want := slices.Concat(pages...), list.of(all); !slices.Equal(got, want) {
						t.Errorf("%s: got %d, want %d", list.path(), ids(got), ids(want))
					}
					for i, page := range pages {
						if limit > 0 && len(page) != limit && i < len(pages)-1 {
							t.Errorf("%s: page %d has %d pets, want %d", list.path(), i, len(page), limit)
						}
					}
				}
			}
		}
	}
}

func TestIDFilter(t *testing.T) {
	s := start(t)
	added := s.add(t, some(120)...)
	slices.Reverse(added)
	list := func(n int) string {
		var text []string
		for i := range n {
			text = append(text, fmt.Sprint(added[i].ID))
		}
		return strings.Join(text, ",")
	}
	for _, n := range []int{1, 20, 21, 99, 100} {
		got := s.do(t, call{path: "/v1/pets?id=" + list(n)})
		if found := got.pets(t); !slices.Equal(found, added[:n]) {
			t.Errorf("%d ids: got %d, want all of them on one page", n, ids(found))
		}
		if _, next := got.links(t); next != "" {
			t.Errorf("%d ids: got a next page %s, want none", n, next)
		}
	}
	t.Run("101", func(t *testing.T) {
		got := s.do(t, bad(call{path: "/v1/pets?id=" + list(101)}))
		got.want(t, 400, animalstore.InvalidParameter)
		got.wantMessage(t, "id", "1 to 100", "positive integers")
	})
	for _, wrong := range []string{"", ",", "1,", ",1", "1,,2", "0", "-1", "1,0", "a", "1.0", "01", "+1", "1%202", "1%3B2", "9223372036854775808", "1,2,x"} {
		got := s.do(t, bad(call{path: "/v1/pets?id=" + wrong}))
		got.want(t, 400, animalstore.InvalidParameter)
		got.wantMessage(t, "id must be")
	}
	t.Run("in several parameters", func(t *testing.T) {
		want := s.do(t, call{path: "/v1/pets?limit=2&id=5,6,7,8"})
		got := s.do(t, call{path: "/v1/pets?id=5&limit=2&id=6,7&id=8"})
		if string(got.body) != string(want.body) || got.header.Get("Link") != want.header.Get("Link") {
			t.Errorf("got %s %s\nwant %s %s", got.header.Get("Link"), got.body, want.header.Get("Link"), want.body)
		}
		_, next := got.links(t)
		if found := s.do(t, call{path: next + "&id=5"}); found.status != 400 {
			t.Errorf("another list with the cursor: got %v, want 400", found)
		}
	})
	// A hundred of the longest ids: links and cursors hold them all.
	var long []string
	for i := range 97 {
		long = append(long, fmt.Sprint(int64(9223372036854775000+i)))
	}
	path := "/v1/pets?limit=1&id=3,2,1," + strings.Join(long, ",")
	pages, err := s.walk(t.Context(), path)
	if err != nil || len(pages) != 3 || pages[0][0].ID != 3 || pages[2][0].ID != 1 {
		t.Errorf("97 long ids and 3 known ones: got %v, %v, want the three, one a page", pages, err)
	}
}

func TestCategoryFilter(t *testing.T) {
	s := start(t)
	s.add(t, animalstore.NewPet{Name: "Rex", CategoryID: -1 << 63}, animalstore.NewPet{Name: "Max", CategoryID: 1<<63 - 1})
	for category, want := range map[string]string{"-9223372036854775808": "Rex", "9223372036854775807": "Max"} {
		if got := s.do(t, call{path: "/v1/pets?categoryId=" + category}).pets(t); len(got) != 1 || got[0].Name != want {
			t.Errorf("category %s: got %+v, want %s alone", category, got, want)
		}
	}
	for _, wrong := range []string{"", "a", "1.0", "01", "+1", "-0", "1e2", "9223372036854775808", "1,2"} {
		got := s.do(t, bad(call{path: "/v1/pets?categoryId=" + wrong}))
		got.want(t, 400, animalstore.InvalidParameter)
		got.wantMessage(t, "categoryId must be a 64-bit integer")
	}
}

// TestCursorsCarryAllFilters: a cursor made with filters goes on with them, and
// with no others.
func TestCursorsCarryAllFilters(t *testing.T) {
	s := start(t)
	for range 9 {
		s.add(t, animalstore.NewPet{Name: "Rex", CategoryID: 1, Status: "sold"})
	}
	list := petList{ids: "9,8,7,6,5,4,3", category: "1", status: "sold", limit: 2}
	cursor := s.cursorOf(t, list.path())
	if got := ids(s.do(t, call{path: "/v1/pets?limit=2&cursor=" + cursor}).pets(t)); !slices.Equal(got, []int64{7, 6}) {
		t.Errorf("the cursor alone: got %d, want 7 and 6", got)
	}
	if got := ids(s.do(t, call{path: "/v1/pets?cursor=" + cursor}).pets(t)); !slices.Equal(got, []int64{7, 6, 5, 4, 3}) {
		t.Errorf("the cursor alone, without a limit: got %d, want 7 to 3", got)
	}
	for name, other := range map[string]petList{
		"id":         {ids: "9,8,7", category: "1", status: "sold"},
		"categoryId": {ids: list.ids, category: "2", status: "sold"},
		"status":     {ids: list.ids, category: "1", status: "available"},
	} {
		got := s.do(t, call{path: other.path() + "&cursor=" + cursor})
		got.want(t, 400, animalstore.InvalidCursor)
		got.wantMessage(t, "cursor was made with another "+name, "keep the filter", "start over")
	}
	for _, elsewhere := range []string{"/v1/categories", "/v1/store/orders"} {
		got := s.do(t, call{path: elsewhere + "?cursor=" + cursor})
		got.want(t, 400, animalstore.InvalidCursor)
		got.wantMessage(t, "cursor belongs to another list")
	}
}
