package sqlite

import (
	"context"

	"animalstore"
	"animalstore/internal/db"
)

// Each status is counted in its part of an index, which is twice as fast as reading all
// pets once.
const (
	countPets = `SELECT
		(SELECT count(*) FROM pets WHERE status = 0),
		(SELECT count(*) FROM pets WHERE status = 1),
		(SELECT count(*) FROM pets WHERE status = 2)`
	countPetsOfCategory = `SELECT
		(SELECT count(*) FROM pets WHERE category_id = ?1 AND status = 0),
		(SELECT count(*) FROM pets WHERE category_id = ?1 AND status = 1),
		(SELECT count(*) FROM pets WHERE category_id = ?1 AND status = 2)`
)

// CountPets implements [db.DB].
func (d *DB) CountPets(ctx context.Context, categoryID *int64) (animalstore.Inventory, error) {
	if categoryID != nil {
		return readOne(ctx, d, "count pets", db.ScanInventory, countPetsOfCategory, *categoryID)
	}
	return readOne(ctx, d, "count pets", db.ScanInventory, countPets)
}
