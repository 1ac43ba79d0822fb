package postgres

import (
	"context"

	"animalstore"
	"animalstore/internal/db"
)

const (
	countPets = `SELECT count(*) FILTER (WHERE status = 0), count(*) FILTER (WHERE status = 1), count(*) FILTER (WHERE status = 2)
		FROM pets`
	countPetsOfCategory = countPets + " WHERE category_id = $1"
)

// CountPets implements [db.DB].
func (d *DB) CountPets(ctx context.Context, categoryID *int64) (animalstore.Inventory, error) {
	if categoryID != nil {
		return readOne(ctx, d, "count pets", db.ScanInventory, countPetsOfCategory, *categoryID)
	}
	return readOne(ctx, d, "count pets", db.ScanInventory, countPets)
}
