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
