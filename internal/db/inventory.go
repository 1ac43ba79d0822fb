package db

import (
	"context"
	"math"

	"animalstore"
)

// Inventory counts pets.
type Inventory interface {
	// CountPets counts the pets in a range of ids, as of one moment. next is the lowest
	// id of a pet that matches beyond the range, or 0 if there is none. Its cost depends
	// on the size of the range, not on the number of pets stored, so a store is counted in
	// short reads. A pet that exists during all of them is counted exactly once, because
	// its id never changes.
	CountPets(ctx context.Context, q CountQuery) (counted animalstore.Inventory, next int64, err error)
}

// CountQuery is a range of ids, and optionally a category, whose pets are counted.
type CountQuery struct {
	CategoryID *int64
	From       int64 // at least 1
	Size       int64 // number of ids, at least 1
}

// Last returns the last id of the range.
func (q CountQuery) Last() int64 { return q.From + min(q.Size-1, math.MaxInt64-q.From) }
