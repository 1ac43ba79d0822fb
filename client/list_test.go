package client_test

import (
	"testing"

	"animalstore"
	"animalstore/client"
	"animalstore/client/clienttest"
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

// TestInvalidQueries: a list with an invalid query is one iteration with an error.
func TestInvalidQueries(t *testing.T) {
	c := clienttest.New(t).Client
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
