package animalstore

import "slices"

// OrderStatus is how far an order has come.
type OrderStatus string

const (
	OrderPlaced    OrderStatus = "placed"
	OrderApproved  OrderStatus = "approved"
	OrderDelivered OrderStatus = "delivered"
	OrderCancelled OrderStatus = "cancelled"
)

// OrderStatuses are all of them, in the order an order usually passes through.
var OrderStatuses = []OrderStatus{OrderPlaced, OrderApproved, OrderDelivered, OrderCancelled}

// ParseOrderStatus reads one of [OrderStatuses], exactly as spelled there.
func ParseOrderStatus(s string) (OrderStatus, bool) {
	switch s := OrderStatus(s); s {
	case OrderPlaced, OrderApproved, OrderDelivered, OrderCancelled:
		return s, true
	}
	return "", false
}

// Order is somebody's wish to buy one pet. It outlives its pet.
type Order struct {
	ID        int64       `json:"id"`
	PetID     int64       `json:"petId"`
	Status    OrderStatus `json:"status"`
	CreatedAt Time        `json:"createdAt"`
	UpdatedAt Time        `json:"updatedAt"`
}

// Open reports whether the order still holds its pet.
func (s OrderStatus) Open() bool { return s == OrderPlaced || s == OrderApproved }

// PetStatus is the status an order in this status gives its pet.
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

// Move takes the order a step on, where that is allowed.
func (o *Order) Move(to OrderStatus, at Time) error {
	next := orderMoves[o.Status]
	if !slices.Contains(next, to) {
		if len(next) == 0 {
			return Errorf(InvalidTransition, "order %d is %s, which is final", o.ID, o.Status)
		}
		return Errorf(InvalidTransition, "order %d cannot become %s: it is %s and can become %s or %s", o.ID, to, o.Status, next[0], next[1])
	}
	o.Status, o.UpdatedAt = to, at
	return nil
}
