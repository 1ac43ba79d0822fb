package dbtest

import (
	"math"
	"testing"

	"animalstore"
	"animalstore/internal/db"
)

func wantCount(t *testing.T, d db.DB, categoryID *int64, want animalstore.Inventory) {
	t.Helper()
	if got, err := d.CountPets(t.Context(), categoryID); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

func countsPets(t *testing.T, d db.DB) {
	wantCount(t, d, nil, animalstore.Inventory{})
	categories := []int64{math.MinInt64, -1, 0, 7, math.MaxInt64}
	for i, categoryID := range categories {
		for range i + 1 {
			for _, status := range animalstore.PetStatuses {
				mustCreatePet(t, d, animalstore.NewPet{Name: "Rex", CategoryID: categoryID, Status: status})
			}
			mustCreatePet(t, d, animalstore.NewPet{Name: "Mia", CategoryID: categoryID, Status: animalstore.PetPending})
			gone := mustCreatePet(t, d, animalstore.NewPet{Name: "Max", CategoryID: categoryID, Status: animalstore.PetSold})
			mustDeletePet(t, d, gone.ID)
		}
	}
	wantCount(t, d, nil, animalstore.Inventory{Available: 15, Pending: 30, Sold: 15})
	for i, categoryID := range categories {
		n := int64(i + 1)
		wantCount(t, d, &categoryID, animalstore.Inventory{Available: n, Pending: 2 * n, Sold: n})
	}
	wantCount(t, d, new(int64(8)), animalstore.Inventory{}) // doesn't exist
}
