package dbtest

import (
	"math"
	"testing"

	"animalstore"
	"animalstore/internal/db"
)

// countAll counts pets in ranges of this size, and returns the number of ranges.
func countAll(t *testing.T, d db.DB, category *int64, size int64) (sum animalstore.Inventory, ranges int) {
	t.Helper()
	for from := int64(1); from != 0; ranges++ {
		part, next, err := d.CountPets(t.Context(), db.CountQuery{CategoryID: category, From: from, Size: size})
		if err != nil {
			t.Fatalf("CountPets from %d: %v", from, err)
		}
		if next != 0 && next-from < size {
			t.Fatalf("CountPets from %d: got next %d, want one beyond %d ids", from, next, size)
		}
		sum, from = sum.Plus(part), next
	}
	return sum, ranges
}

func countsAddUp(t *testing.T, d db.DB) {
	if got, ranges := countAll(t, d, nil, 10); got != (animalstore.Inventory{}) || ranges != 1 {
		t.Errorf("an empty store: got %+v in %d ranges, want none in one", got, ranges)
	}
	extreme := []int64{math.MinInt64, -1, 0, 7, math.MaxInt64}
	want := map[int64]animalstore.Inventory{}
	var all animalstore.Inventory
	for i := range 60 {
		p := animalstore.NewPet{Name: "Rex", CategoryID: extreme[i%len(extreme)], Status: animalstore.PetStatuses[i*i%7%3]}
		pet := mustCreatePet(t, d, p)
		if i%4 == 1 || 20 <= i && i < 40 { // so that there are gaps
			mustDeletePet(t, d, pet.ID)
			continue
		}
		one := map[animalstore.PetStatus]animalstore.Inventory{
			animalstore.PetAvailable: {Available: 1}, animalstore.PetPending: {Pending: 1}, animalstore.PetSold: {Sold: 1},
		}[p.Status]
		want[p.CategoryID], all = want[p.CategoryID].Plus(one), all.Plus(one)
	}
	want[8] = animalstore.Inventory{} // doesn't exist
	for _, size := range []int64{1, 3, 59, 60, math.MaxInt64} {
		got, ranges := countAll(t, d, nil, size)
		if got != all {
			t.Errorf("%d ids at a time: got %+v, want %+v", size, got, all)
		}
		if size == 3 && ranges > 15 {
			t.Errorf("3 ids at a time: got %d ranges, want at most 15: gaps are skipped", ranges)
		}
		for category, want := range want {
			if got, _ := countAll(t, d, &category, size); got != want {
				t.Errorf("category %d, %d ids at a time: got %+v, want %+v", category, size, got, want)
			}
		}
	}
	if got, next, err := d.CountPets(t.Context(), db.CountQuery{From: math.MaxInt64, Size: 20}); err != nil || next != 0 || got != (animalstore.Inventory{}) {
		t.Errorf("from the highest id: got %+v, %d, %v, want nothing", got, next, err)
	}
}
