package db

import (
	"context"

	"animalstore"
)

// Inventory counts pets.
type Inventory interface {
	// CountPets counts all pets, or those of a category unless that is nil, as of one
	// moment. Its cost is proportional to their number.
	CountPets(ctx context.Context, categoryID *int64) (animalstore.Inventory, error)
}

// ScanInventory scans the counts of the statuses.
func ScanInventory(row Row) (counted animalstore.Inventory, err error) {
	err = row.Scan(&counted.Available, &counted.Pending, &counted.Sold)
	return counted, err
}
