package db

import (
	"context"
	"fmt"
	"slices"

	"animalstore"
)

// Orders stores orders.
type Orders interface {
	// PlaceOrder adds an order that passed Validate and makes its pet pending. If several
	// callers order the same pet at once, exactly one succeeds. It returns
	// ErrNotFound if the pet doesn't exist, and an error with the code
	// pet_not_available if the pet isn't available. idempotency may be nil.
	PlaceOrder(ctx context.Context, in animalstore.NewOrder, at animalstore.Time, idempotency *Idempotency) (order animalstore.Order, replayed bool, err error)

	// Order returns one order.
	Order(ctx context.Context, id int64) (animalstore.Order, error)

	// Orders returns orders by id, newest first unless q says otherwise, at the same
	// cost as Pets.
	Orders(ctx context.Context, q animalstore.OrderQuery, page Page) ([]animalstore.Order, error)

	// UpdateOrder calls change with an order and stores the result. If its status
	// changed, the status that it implies for the pet is stored with it.
	UpdateOrder(ctx context.Context, id int64, change func(o *animalstore.Order) error) (animalstore.Order, error)
}

// OrderLists are the statements for lists of orders in one direction. Their parameters are
// the id to begin after, the limit, the stored statuses, the pet and the reference, as far
// as they have them. ByStatus has a single status: merging a list of one takes twice as long.
type OrderLists struct{ All, ByStatus, ByStatuses, OfPet, ByReference, OfPetByReference string }

// OrderStatement returns the statement for a page and its arguments.
func OrderStatement(newest, oldest *OrderLists, q animalstore.OrderQuery, page Page) (statement string, args []any) {
	lists, start := newest, UpperBound(page.After)
	if q.Oldest {
		lists, start = oldest, page.After
	}
	statuses := StoredIndexes(animalstore.OrderStatuses)
	if len(q.Statuses) > 0 {
		statuses = slices.DeleteFunc(statuses, func(i int64) bool {
			return !slices.Contains(q.Statuses, animalstore.OrderStatuses[i])
		})
	}
	args = []any{start, page.Limit, statuses}
	switch {
	case q.PetID != 0 && q.Reference != "":
		return lists.OfPetByReference, append(args, q.PetID, string(q.Reference))
	case q.PetID != 0:
		return lists.OfPet, append(args, q.PetID)
	case q.Reference != "":
		return lists.ByReference, append(args, string(q.Reference))
	case len(statuses) == 1:
		return lists.ByStatus, []any{start, page.Limit, statuses[0]}
	case len(statuses) < len(animalstore.OrderStatuses):
		return lists.ByStatuses, args
	}
	return lists.All, args[:2]
}

// NewOrder returns the order that PlaceOrder adds, without an id, and sets the pet's
// status accordingly. It returns an error if the pet can't be ordered.
func NewOrder(in animalstore.NewOrder, pet *animalstore.Pet, at animalstore.Time) (animalstore.Order, error) {
	if err := pet.CheckOrderable(); err != nil {
		return animalstore.Order{}, err
	}
	order := animalstore.Order{
		PetID: pet.ID, Status: animalstore.OrderPlaced, Reference: in.Reference, Note: in.Note,
		CreatedAt: at, UpdatedAt: at,
	}
	pet.Status = order.Status.PetStatus()
	return order, nil
}

// OrderColumns are read by [ScanOrder].
const OrderColumns = "id, pet_id, status, reference, note, created_at, updated_at"

// ScanOrder scans an order.
func ScanOrder(row Row) (animalstore.Order, error) {
	var order animalstore.Order
	var status, created, updated int64
	err := row.Scan(&order.ID, &order.PetID, &status, (*string)(&order.Reference), (*string)(&order.Note),
		&created, &updated)
	order.Status = FromStored(animalstore.OrderStatuses, status)
	order.CreatedAt, order.UpdatedAt = animalstore.AtMilli(created), animalstore.AtMilli(updated)
	if err == nil && (order.ID <= 0 || order.Status == "") {
		err = fmt.Errorf("%w: order %d", errDamagedRow, order.ID)
	}
	return order, err
}
