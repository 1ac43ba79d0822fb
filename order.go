package animalstore

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

// Order is somebody's wish to buy one animal. It outlives its animal.
type Order struct {
	ID        int64       `json:"id"`
	PetID     int64       `json:"petId"`
	Status    OrderStatus `json:"status"`
	CreatedAt Time        `json:"createdAt"`
	UpdatedAt Time        `json:"updatedAt"`
}
