package api

import (
	"testing"

	"animalstore"
)

// TestEncodedOnce: a page is used again for the very list it was encoded from, and for
// no other, however similar.
func TestEncodedOnce(t *testing.T) {
	c := newCache(false)
	pets := []animalstore.Pet{{ID: 2, Name: "Rex"}, {ID: 1, Name: "Tom"}}
	p := newPage(true, "", appendPets(nil, pets))
	p.pets = pets
	c.put("/v1/pets", 0, p)
	similar := append([]animalstore.Pet{}, pets...)
	for _, tc := range []struct {
		name, key string
		pets      []animalstore.Pet
		want      *page
	}{
		{"the same list", "/v1/pets", pets, p},
		{"a part of it", "/v1/pets", pets[:1], nil},
		{"another list", "/v1/pets", similar, nil},
		{"an empty list", "/v1/pets", nil, nil},
		{"another page", "/v1/pets?limit=1", pets, nil},
	} {
		if got := c.encoded(tc.key, tc.pets); got != tc.want {
			t.Errorf("%s: got %v, want %v", tc.name, got, tc.want)
		}
	}
	off := newCache(true)
	off.put("/v1/pets", 0, newPage(true, "", nil))
	if got := off.encoded("/v1/pets", pets); got != nil {
		t.Errorf("with the cache off: got %v, want none", got)
	}
}
