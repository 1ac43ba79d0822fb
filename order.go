package animalstore

import "slices"

// OrderStatus is the progress of an order.
type OrderStatus string

const (
	OrderPlaced    OrderStatus = "placed"
	OrderApproved  OrderStatus = "approved"
	OrderDelivered OrderStatus = "delivered"
	OrderCancelled OrderStatus = "cancelled"
)

// OrderStatuses are all statuses, in the order an order usually goes through
// them.
var OrderStatuses = []OrderStatus{OrderPlaced, OrderApproved, OrderDelivered, OrderCancelled}

// NewOrder is an order to place.
type NewOrder struct {
	PetID int64 `json:"petId"`
}

// Order is an order for one pet. It stays when its pet is removed.
type Order struct {
	ID        int64       `json:"id"`
	PetID     int64       `json:"petId"`
	Status    OrderStatus `json:"status"`
	CreatedAt Time        `json:"createdAt"`
	UpdatedAt Time        `json:"updatedAt"`
}

// Open reports whether an order in this status still reserves its pet.
func (s OrderStatus) Open() bool { return s == OrderPlaced || s == OrderApproved }

// PetStatus is the status of the pet of an order in this status.
func (s OrderStatus) PetStatus() PetStatus {
	switch s {
	case OrderDelivered:
		return PetSold
	case OrderCancelled:
		return PetAvailable
	}
	return PetPending
}

var orderMoves = map[OrderStatus][]OrderStatus{
	OrderPlaced:   {OrderApproved, OrderCancelled},
	OrderApproved: {OrderDelivered, OrderCancelled},
}

// Move changes the status, if that is allowed.
func (o *Order) Move(to OrderStatus, at Time) error {
	next := orderMoves[o.Status]
	if !slices.Contains(next, to) {
		if len(next) == 0 {
			return Errorf(InvalidTransition, "order %d is %s, which is final", o.ID, o.Status)
		}
		return Errorf(InvalidTransition, "order %d cannot become %s: it is %s and can become %s", o.ID, to, o.Status, JoinOr(next))
	}
	o.Status, o.UpdatedAt = to, at
	return nil
}

// OrderPatch is a change of an order. Its status is required.
type OrderPatch struct {
	Status *OrderStatus `json:"status,omitempty"`
}

// Validate checks what doesn't depend on the order.
func (patch OrderPatch) Validate() error {
	if patch.Status == nil {
		return Errorf(ValidationFailed, "status is required")
	}
	if !slices.Contains(OrderStatuses, *patch.Status) {
		return Errorf(ValidationFailed, "status %s", MustBeOneOf(OrderStatuses))
	}
	return nil
}

// Apply changes o at the given time, if the patch is valid and allowed for o.
// After an error o is unchanged.
func (patch OrderPatch) Apply(o *Order, at Time) error {
	if err := patch.Validate(); err != nil {
		return err
	}
	return o.Move(*patch.Status, at)
}
