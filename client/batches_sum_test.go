package client

import (
	"crypto/sha256"
	"fmt"
	"testing"

	"animalstore"
)

// TestImportSum: an import has the sum of its JSON, as in our other clients.
func TestImportSum(t *testing.T) {
	pets := []animalstore.NewPet{{Name: "Rex \u2028<&> \"", CategoryID: 1}, {Name: "Mia", CategoryID: -1 << 63, Status: animalstore.PetSold}}
	for _, n := range []int{1, 2} {
		text, err := animalstore.EncodeJSON([]any{"a\"b", pets[:n]})
		if err != nil {
			t.Fatal(err)
		}
		got, err := importSum(pets[:n], "a\"b")
		if want := fmt.Sprintf("%x", sha256.Sum256(text)); err != nil || got != want {
			t.Errorf("%d pets: got %s, %v, want %s", n, got, err, want)
		}
	}
}
