package client_test

import (
	"fmt"
	"slices"
	"testing"

	"animalstore"
	"animalstore/client"
	"animalstore/client/clienttest"
)

// TestCursors: a program that shows one page at a time can continue where a page ended.
func TestCursors(t *testing.T) {
	c := clienttest.New(t).Client
	var want, got []int64
	for i := range 7 {
		want = append(want, add(t, c, fmt.Sprint("pet ", i)).ID)
	}
	slices.Reverse(want)
	cursor, pages := "", 0
	for {
		var meta client.Meta
		for pet, err := range c.ListPets(t.Context(), client.PetQuery{PageSize: 3, Status: animalstore.PetAvailable}, client.FromCursor(cursor), client.OnePage(), client.ReadMeta(&meta)) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, pet.ID)
		}
		pages++
		if cursor = meta.NextCursor; cursor == "" {
			break
		}
	}
	if !slices.Equal(got, want) || pages != 3 {
		t.Errorf("got %v on %d pages, want %v on 3", got, pages, want)
	}
}
