package api_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"animalstore"
)

func categoryPath(id any) string { return fmt.Sprint("/v1/categories/", id) }

// categories walks the whole list.
func (s *service) categories(t testing.TB, path string) (all []animalstore.Category) {
	t.Helper()
	for path != "" {
		a := s.do(t, call{path: path})
		all = append(all, read[[]animalstore.Category](t, a, 200)...)
		if len(all) > 1000 {
			t.Fatalf("the list does not end: %+v", all[:20])
		}
		_, path = a.links(t)
	}
	return all
}

func TestCategoriesComeWithPets(t *testing.T) {
	s := start(t)
	s.do(t, call{path: categoryPath(5)}).want(t, 404, animalstore.CategoryNotFound)
	if got := s.do(t, call{path: "/v1/categories"}); string(got.body) != "[]\n" {
		t.Errorf("got %s, want []", got.body)
	}
	pet := read[animalstore.Pet](t, s.do(t, post("/v1/pets", `{"name":"Rex","categoryId":5}`)), 201)
	if got := s.do(t, call{path: categoryPath(5)}); string(got.body) != `{"id":5,"name":""}`+"\n" || got.status != 200 {
		t.Errorf("got %v, want category 5 without a name", got)
	}
	s.do(t, patch(petPath(pet.ID), `{"categoryId":-5}`)).want(t, 200, "")
	want := []animalstore.Category{{ID: -5}, {ID: 5}}
	if got := s.categories(t, "/v1/categories"); !slices.Equal(got, want) {
		t.Errorf("after PATCH: got %+v, want %+v", got, want)
	}
	// What was refused adds nothing.
	s.do(t, bad(post("/v1/pets", `{"name":"","categoryId":6}`))).want(t, 400, animalstore.ValidationFailed)
	s.do(t, patch(petPath(pet.ID), `{"categoryId":6}`, "If-Match", `"old"`)).want(t, 412, animalstore.PreconditionFailed)
	s.do(t, patch(petPath(pet.ID), `{"status":"sold"}`)).want(t, 200, "")
	s.do(t, patch(petPath(pet.ID), `{"categoryId":6,"status":"available"}`)).want(t, 409, animalstore.InvalidTransition)
	s.do(t, remove(petPath(pet.ID))).want(t, 204, "")
	if got := s.categories(t, "/v1/categories"); !slices.Equal(got, want) {
		t.Errorf("at last: got %+v, want %+v", got, want)
	}
}

func TestPutCategory(t *testing.T) {
	s := start(t)
	first := s.do(t, put(categoryPath(7), `{"name":"cats","id":9,"x":1}`))
	first.want(t, 201, "")
	if string(first.body) != `{"id":7,"name":"cats"}`+"\n" || first.header.Get("Location") != categoryPath(7) {
		t.Errorf("got %v at %q, want category 7", first, first.header.Get("Location"))
	}
	second := s.do(t, put(categoryPath(7), `{"name":"Katzen 🐈"}`))
	if second.want(t, 200, ""); second.header.Get("ETag") == first.header.Get("ETag") {
		t.Errorf("got ETag %s twice", second.header.Get("ETag"))
	}
	third := s.do(t, put(categoryPath(7), `{"name":"Katzen 🐈"}`))
	if third.want(t, 200, ""); third.header.Get("ETag") != second.header.Get("ETag") {
		t.Errorf("got ETag %s, want %s again", third.header.Get("ETag"), second.header.Get("ETag"))
	}
	s.do(t, post("/v1/pets", `{"name":"Rex","categoryId":7}`)).want(t, 201, "")
	if got := read[animalstore.Category](t, s.do(t, call{path: categoryPath(7)}), 200); got.Name != "Katzen 🐈" {
		t.Errorf("after a pet of it: got %+v, want it to keep its name", got)
	}
	s.do(t, put(categoryPath(8), `{"name":"`+strings.Repeat("🐈", 1024)+`"}`)).want(t, 201, "")
}

func TestPutCategoryIfMatch(t *testing.T) {
	s := start(t)
	for _, tag := range []string{"*", `"x"`, `W/"x"`, ""} {
		got := s.do(t, bad(put(categoryPath(1), `{"name":"cats"}`, "If-Match", tag)))
		got.want(t, 412, animalstore.PreconditionFailed)
		got.wantMessage(t, "If-Match")
		s.do(t, call{path: categoryPath(1)}).want(t, 404, animalstore.CategoryNotFound)
	}
	old := s.do(t, put(categoryPath(1), `{"name":"cats"}`)).header.Get("ETag")
	current := s.do(t, put(categoryPath(1), `{"name":"dogs"}`, "If-Match", old))
	current.want(t, 200, "")
	s.do(t, put(categoryPath(1), `{"name":"lost"}`, "If-Match", old)).want(t, 412, animalstore.PreconditionFailed)
	if got := read[animalstore.Category](t, s.do(t, call{path: categoryPath(1)}), 200); got.Name != "dogs" {
		t.Errorf("got %+v, want the name dogs", got)
	}
	s.do(t, put(categoryPath(1), `{"name":"birds"}`, "If-Match", "*")).want(t, 200, "")
}

func TestCategoryIDs(t *testing.T) {
	s := start(t)
	var want []animalstore.Category
	for _, id := range []int64{math.MaxInt64, 3, -1, 0, math.MinInt64, 1<<53 + 1, 1 << 53, -40, 40} {
		c := animalstore.Category{ID: id, Name: fmt.Sprint("number ", id)}
		s.do(t, put(categoryPath(id), fmt.Sprintf(`{"name":%q}`, c.Name))).want(t, 201, "")
		if got := read[animalstore.Category](t, s.do(t, call{path: categoryPath(id)}), 200); got != c {
			t.Errorf("got %+v, want %+v", got, c)
		}
		want = append(want, c)
	}
	slices.SortFunc(want, func(a, b animalstore.Category) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	for _, limit := range []int{1, 2, 4, 8, 9, 100} {
		if got := s.categories(t, fmt.Sprint("/v1/categories?limit=", limit)); !slices.Equal(got, want) {
			t.Errorf("limit %d: got %+v\nwant %+v", limit, got, want)
		}
	}
	for _, id := range []string{"abc", "1.0", "01", "+1", "-0", "1e2", "9223372036854775808", "-9223372036854775809", "0x1", "%201", "1%2C2"} {
		for _, c := range []call{{path: categoryPath(id)}, put(categoryPath(id), `{"name":"x"}`)} {
			got := s.do(t, bad(c))
			got.want(t, 404, animalstore.CategoryNotFound)
			got.wantMessage(t, "64-bit integer")
		}
	}
}
