package db

import (
	"context"

	"animalstore"
)

// Bulk is a database that takes whole rows, many at a time: sample data, or a
// store that moves in from elsewhere. What [DB] says of writes holds here too.
type Bulk interface {
	// Reserve sets ids of pets and of orders aside, so many of each, and
	// returns the highest ones that were given before. The ids that follow
	// those are the caller's: nobody else gets them, whether they are used or
	// not. Of none it sets nothing aside, and only tells.
	Reserve(ctx context.Context, pets, orders int64) (lastPet, lastOrder int64, err error)

	// Load adds rows under the ids they have: all of them or, on an error, none.
	// ErrExists if there is a pet, an order or a category of such an id.
	// The ids of pets and orders are reserved ones, or nobody else writes.
	// It believes what it is given: that the rows are valid, have the category
	// of each pet among them or in the store, and agree with each other.
	Load(ctx context.Context, rows Rows) error
}

// Rows are a part of a store.
type Rows struct {
	Categories []animalstore.Category
	Pets       []animalstore.Pet
	Orders     []animalstore.Order
}
