package db

import (
	"context"

	"animalstore"
)

// Bulk is implemented by databases that can load many complete rows at once, such as
// sample data. Loaded rows are as durable as any others, but they make no events.
type Bulk interface {
	// Reserve reserves this many pet and order ids and returns the highest ids assigned
	// before. The ids right after those belong to the caller, whether it uses them or
	// not. With zero it only returns the highest ids.
	Reserve(ctx context.Context, pets, orders int64) (lastPet, lastOrder int64, err error)

	// Load adds rows with the ids they have, all of them or none. It returns ErrExists
	// if a pet, order or category with one of the ids exists. The ids of pets and
	// orders must be reserved, unless nobody else writes. Load doesn't validate: the
	// rows must be valid and consistent, and each pet's category must be among them or
	// already stored.
	Load(ctx context.Context, rows Rows) error
}

// Rows are a part of a store.
type Rows struct {
	Categories []animalstore.Category
	Pets       []animalstore.Pet
	Orders     []animalstore.Order
	Photos     []NewPhoto // which get the next ids
}

// Shift adds the given numbers to the ids of pets and orders, so that they follow the
// highest ids already taken.
func (r Rows) Shift(lastPet, lastOrder int64) {
	for i := range r.Pets {
		r.Pets[i].ID += lastPet
	}
	for i := range r.Photos {
		r.Photos[i].PetID += lastPet
	}
	for i := range r.Orders {
		r.Orders[i].ID += lastOrder
		r.Orders[i].PetID += lastPet
	}
}
