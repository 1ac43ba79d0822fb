package remote

import (
	"slices"
	"strings"
	"testing"

	"animalstore"
	"animalstore/client/clienttest"
)

func TestIDsThatBegin(t *testing.T) {
	for digits, want := range map[string][]int64{"": nil, "x": nil, "-1": nil, "0": nil, "7": {7, 70, 71, 72}, "12": {12, 120, 121, 122}} {
		got := idsThatBegin(digits)
		if want == nil && got != nil || want != nil && (len(got) != MaxPage || !slices.Equal(got[:4], want)) {
			t.Errorf("%q: got %v, want %d that begin with %v", digits, got, MaxPage, want)
		}
	}
	if got := idsThatBegin("9223372036854775807"); len(got) > 1 {
		t.Errorf("the highest id: got %v, want no other", got)
	}
}

// TestFindPets: if one of the pets doesn't exist, there are none to remove.
func TestFindPets(t *testing.T) {
	c := clienttest.New(t).Client
	for _, name := range []string{"Rex", "Mia", "Tux"} {
		if _, err := c.CreatePet(t.Context(), animalstore.NewPet{Name: name, CategoryID: 7}); err != nil {
			t.Fatal(err)
		}
	}
	pets, err := FindPets(t.Context(), c, []int64{3, 1})
	if err != nil || len(pets) != 2 || pets[0].Name != "Tux" || pets[1].Name != "Rex" {
		t.Errorf("got %v and %v, want Tux and Rex", pets, err)
	}
	if pets, err := FindPets(t.Context(), c, []int64{1, 4}); err == nil || pets != nil {
		t.Errorf("got %v and %v, want an error about pet 4", pets, err)
	}
}

func TestCheckKey(t *testing.T) {
	for key, valid := range map[string]bool{"": false, "two secrets": false, "secret\n": false, "s\u00e9cret": false, "secret": true} {
		err := CheckKey(key)
		if (err == nil) != valid {
			t.Errorf("%q: got %v, want valid: %t", key, err, valid)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: got the key in %q", key, err)
		}
	}
}
