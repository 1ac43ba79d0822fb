package db

import (
	"context"

	"animalstore"
)

// Orders stores orders.
type Orders interface {
	// PlaceOrder adds an order for a pet and makes the pet pending. If several
	// callers order the same pet at once, exactly one succeeds. It returns
	// ErrNotFound if the pet doesn't exist, and an error with the code
	// pet_not_available if the pet isn't available. idempotency may be nil.
	PlaceOrder(ctx context.Context, petID int64, at animalstore.Time, idempotency *Idempotency) (order animalstore.Order, replayed bool, err error)

	// Order returns one order.
	Order(ctx context.Context, id int64) (animalstore.Order, error)

	// Orders returns orders in descending order of id, at the same cost as Pets.
	Orders(ctx context.Context, q OrderQuery) ([]animalstore.Order, error)

	// UpdateOrder calls change with an order and stores the new status, together
	// with the status that it implies for the pet.
	UpdateOrder(ctx context.Context, id int64, change func(o *animalstore.Order) error) (animalstore.Order, error)
}

// OrderQuery selects the orders that match all of its fields. A field with its
// zero value matches every order.
type OrderQuery struct {
	Status animalstore.OrderStatus
	PetID  int64
	Before int64 // only lower ids
	Limit  int   // at least 1
}

// NewOrder returns the order that PlaceOrder adds, without an id, and sets the pet's
// status accordingly. It returns an error if the pet can't be ordered.
func NewOrder(pet *animalstore.Pet, at animalstore.Time) (animalstore.Order, error) {
	if err := pet.CheckOrderable(); err != nil {
		return animalstore.Order{}, err
	}
	order := animalstore.Order{PetID: pet.ID, Status: animalstore.OrderPlaced, CreatedAt: at, UpdatedAt: at}
	pet.Status = order.Status.PetStatus()
	return order, nil
}
