package client_test

import (
	"testing"

	"animalstore"
	"animalstore/client"
	"animalstore/client/clienttest"
)

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
