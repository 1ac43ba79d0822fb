package client_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"animalstore"
	"animalstore/client"
	"animalstore/client/clienttest"
	"animalstore/internal/testenv"
)

// TestListStopsAtBreak: a page is requested only when the loop gets there.
func TestListStopsAtBreak(t *testing.T) {
	var responses tally
	store := clienttest.New(t, clienttest.WithMiddleware(responses.middleware))
	for range 10 {
		add(t, store.Client, "Rex")
	}
	tests := map[string]struct{ pageSize, stop, requests int }{
		"at the first":               {3, 1, 1},
		"at the end of a page":       {3, 3, 1},
		"at the start of the next":   {3, 4, 2},
		"at the end of the second":   {3, 6, 2},
		"never":                      {3, 99, 4},
		"never, pages that fit":      {5, 99, 2},
		"never, one page":            {10, 99, 1},
		"never, pages of any size":   {0, 99, 1},
		"at once, pages of any size": {0, 1, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			before := responses.total()
			list := store.Client.ListPets(t.Context(), client.PetQuery{PageSize: test.pageSize})
			if got := responses.total() - before; got != 0 {
				t.Errorf("got %d requests before the loop, want none", got)
			}
			n := 0
			for _, err := range list {
				if err != nil {
					t.Fatal(err)
				}
				if n++; n == test.stop {
					break
				}
			}
			if want := min(test.stop, 10); n != want {
				t.Errorf("got %d pets, want %d", n, want)
			}
			if got := responses.total() - before; got != test.requests {
				t.Errorf("got %d requests, want %d", got, test.requests)
			}
		})
	}
}

// TestListInMotion reads lists while others add, change and remove pets: pets that
// exist throughout are listed once, newest first, and nothing is listed twice.
func TestListInMotion(t *testing.T) {
	store := clienttest.New(t)
	c := store.Client
	var lasting, passing []int64
	for i := range 300 {
		pet := add(t, c, fmt.Sprintf("pet %d", i))
		if i%3 == 0 {
			passing = append(passing, pet.ID)
		} else {
			lasting = append(lasting, pet.ID)
		}
	}
	slices.Reverse(lasting) // in the order of the list
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := c.CreatePet(t.Context(), animalstore.NewPet{Name: "late", CategoryID: 1}); err != nil {
				t.Error(err)
			}
			if i < len(passing) {
				if err := c.DeletePet(t.Context(), passing[rand.IntN(i+1)]); err != nil {
					wantCode(t, err, animalstore.PetNotFound)
				}
			}
			if _, err := c.UpdatePet(t.Context(), lasting[rand.IntN(len(lasting))], animalstore.PetPatch{Name: new("renamed")}); err != nil {
				t.Error(err)
			}
		}
	})
	for round := range testenv.Count(20, 500) {
		query := client.PetQuery{PageSize: 1 + rand.IntN(40)}
		if round%2 == 0 {
			query.Status = animalstore.PetAvailable
		}
		var seen []int64
		for _, p := range collect(t, c.ListPets(t.Context(), query)) {
			seen = append(seen, p.ID)
		}
		if !slices.IsSortedFunc(seen, func(a, b int64) int { return int(b - a) }) || len(slices.Compact(slices.Clone(seen))) != len(seen) {
			t.Errorf("got ids %v, want each once, highest first", seen)
		}
		stayed := slices.DeleteFunc(seen, func(id int64) bool { return !slices.Contains(lasting, id) })
		if !slices.Equal(stayed, lasting) {
			t.Errorf("page size %d: got %d of the pets that existed throughout, want all %d", query.PageSize, len(stayed), len(lasting))
		}
	}
	close(stop)
	wg.Wait()
}

// TestListFilters: filters apply to every page.
func TestListFilters(t *testing.T) {
	store := clienttest.New(t)
	c := store.Client
	var ids []int64
	for i := range 12 {
		pet, err := c.CreatePet(t.Context(), animalstore.NewPet{Name: "Rex", CategoryID: int64(i % 2), Status: animalstore.PetStatuses[i%3]})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, pet.ID)
	}
	tests := map[string]struct {
		query client.PetQuery
		want  int
	}{
		"all":                 {client.PetQuery{}, 12},
		"status":              {client.PetQuery{Status: animalstore.PetSold}, 4},
		"category zero":       {client.PetQuery{CategoryID: new(int64(0))}, 6},
		"ids":                 {client.PetQuery{IDs: ids[:5]}, 5},
		"status and category": {client.PetQuery{Status: animalstore.PetSold, CategoryID: new(int64(1))}, 2},
		"no such id":          {client.PetQuery{IDs: []int64{999}}, 0},
	}
	for name, test := range tests {
		for _, size := range []int{0, 1, 3} {
			test.query.PageSize = size
			if got := len(collect(t, c.ListPets(t.Context(), test.query))); got != test.want {
				t.Errorf("%s in pages of %d: got %d pets, want %d", name, size, got, test.want)
			}
		}
	}
	for _, query := range []client.PetQuery{{IDs: []int64{}}, {PageSize: 101}, {PageSize: -1}, {Status: "lost"}} {
		n := 0
		for _, err := range c.ListPets(t.Context(), query) {
			n++
			wantCode(t, err, animalstore.InvalidParameter)
		}
		if n != 1 {
			t.Errorf("%+v: got %d iterations, want one with an error", query, n)
		}
	}
}

// TestListConditions: conditions only apply to the first page.
func TestListConditions(t *testing.T) {
	store := clienttest.New(t)
	c := store.Client
	for range 5 {
		add(t, c, "Rex")
	}
	var m client.Meta
	query := client.PetQuery{PageSize: 2}
	for range c.ListPets(t.Context(), query, client.ReadMeta(&m)) {
		break
	}
	if m.ETag == "" || m.Status != 200 {
		t.Errorf("got %+v, want the first page's", m)
	}
	for _, err := range c.ListPets(t.Context(), query, client.IfNoneMatch(m.ETag)) {
		if !errors.Is(err, client.ErrNotModified) {
			t.Errorf("got %v, want ErrNotModified", err)
		}
	}
	if got := len(collect(t, c.ListPets(t.Context(), query, client.IfMatch(m.ETag)))); got != 5 {
		t.Errorf("got %d pets, want all 5", got)
	}
	add(t, c, "Mia")
	if got := len(collect(t, c.ListPets(t.Context(), query, client.IfNoneMatch(m.ETag)))); got != 6 {
		t.Errorf("got %d pets, want all 6", got)
	}
}

// TestLinks: the next page is requested from the link's address, but only from the
// service that the key is for.
func TestLinks(t *testing.T) {
	page := "[" + petJSON + "]"
	tests := map[string]struct{ base, link, want string }{
		"as the service sends it": {"http://store.test", `</v1/pets?limit=1>; rel="first", </v1/pets?cursor=a%2Fb&limit=1>; rel="next"`, "http://store.test/v1/pets?cursor=a%2Fb&limit=1"},
		"under a path":            {"http://store.test/pets/v1", `</v1/pets?cursor=x>; rel="next"`, "http://store.test/pets/v1/pets?cursor=x"},
		"rewritten by a proxy":    {"http://store.test/pets", `<http://store.test/pets/v1/pets?cursor=x>; rel="next"`, "http://store.test/pets/v1/pets?cursor=x"},
		"without quotes":          {"http://store.test", `</v1/pets?cursor=x>;rel=next`, "http://store.test/v1/pets?cursor=x"},
		"with more parameters":    {"http://store.test", `</v1/pets?cursor=x>; title="a; b"; REL="next"`, "http://store.test/v1/pets?cursor=x"},
		"two relations":           {"http://store.test", `</v1/pets?cursor=x>; rel="last next"`, "http://store.test/v1/pets?cursor=x"},
		"a comma in it":           {"http://store.test", `</v1/pets?id=1,2&cursor=x>; rel="next"`, "http://store.test/v1/pets?id=1,2&cursor=x"},
		"none":                    {"http://store.test", `</v1/pets>; rel="first"`, ""},
		"another host":            {"http://store.test", `<http://evil.test/v1/pets?cursor=x>; rel="next"`, "error"},
		"another host, in short":  {"http://store.test", `<//evil.test/v1/pets?cursor=x>; rel="next"`, "error"},
		"another scheme":          {"https://store.test", `<http://store.test/v1/pets?cursor=x>; rel="next"`, "error"},
		"out of the API":          {"http://store.test", `</v2/pets?cursor=x>; rel="next"`, "error"},
		"the same again":          {"http://store.test", `</v1/pets?limit=100>; rel="next"`, "error"},
		"no URL":                  {"http://store.test", `</v1/%zz>; rel="next"`, "error"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := &scripted{responses: []func(*http.Request) (*http.Response, error){response(200, page, "Link", test.link), response(200, page)}}
			c, err := client.New(test.base, "ast_live_secret", client.WithHTTPClient(&http.Client{Transport: s}))
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for _, err = range c.ListPets(t.Context(), client.PetQuery{}) {
				n++
			}
			got := ""
			switch {
			case err != nil:
				got = "error"
			case len(s.sent) == 2:
				got = s.sent[1].URL.String()
			}
			if got != test.want {
				t.Errorf("got %q (%v), want %q", got, err, test.want)
			}
			for _, r := range s.sent {
				if !strings.HasPrefix(r.URL.String(), test.base) {
					t.Errorf("the key went to %s", r.URL)
				}
			}
		})
	}
}
