package animalstore

import (
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

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

// The maximum lengths of the texts of an order, in code points.
const (
	MaxReferenceLength = 100
	MaxNoteLength      = 1000
)

// NewOrder is an order to place.
type NewOrder struct {
	PetID     int64        `json:"petId"`
	Reference OptionalText `json:"reference,omitempty"`
	Note      OptionalText `json:"note,omitempty"`
}

// Validate checks what doesn't depend on the pet.
func (n NewOrder) Validate() error {
	if err := validateReference(n.Reference); err != nil {
		return err
	}
	return validateNote(n.Note)
}

func validateReference(text OptionalText) error {
	return validateOrderText("reference", text, MaxReferenceLength)
}

func validateNote(text OptionalText) error { return validateOrderText("note", text, MaxNoteLength) }

func validateOrderText(field string, text OptionalText, maxLength int) error {
	switch n := utf8.RuneCountInString(string(text)); {
	case !utf8.ValidString(string(text)):
		return Errorf(ValidationFailed, "%s must be valid UTF-8", field)
	case n > maxLength:
		return Errorf(ValidationFailed, "%s must have at most %d characters, not %d", field, maxLength, n)
	case strings.ContainsRune(string(text), 0):
		return Errorf(ValidationFailed, "%s must not contain the character U+0000", field)
	}
	return nil
}

// Order is an order for one pet. It stays when its pet is removed.
type Order struct {
	ID        int64        `json:"id"`
	PetID     int64        `json:"petId"`
	Status    OrderStatus  `json:"status"`
	Reference OptionalText `json:"reference"` // the shop's own number for the order
	Note      OptionalText `json:"note"`
	CreatedAt Time         `json:"createdAt"`
	UpdatedAt Time         `json:"updatedAt"`
}

// OrderQuery selects orders. A field with its zero value matches every order.
type OrderQuery struct {
	Statuses  []OrderStatus
	PetID     int64
	Reference OptionalText // exactly this one
	Oldest    bool         // the oldest first, instead of the newest
}

// sortOldest is the order of a list whose oldest entry comes first.
const sortOldest = "oldest"

// Values returns the parameters of the list.
func (q OrderQuery) Values() url.Values {
	values := url.Values{}
	set(values, "status", joinList(q.Statuses))
	setID(values, "petId", q.PetID)
	set(values, "reference", q.Reference)
	if q.Oldest {
		values.Set("sort", sortOldest)
	}
	return values
}

// ParseOrderQuery is the inverse of [OrderQuery.Values].
func ParseOrderQuery(values url.Values) (OrderQuery, error) {
	p := NewParameters(values)
	q := OrderQuery{
		Statuses:  someOf(p, "status", OrderStatuses),
		PetID:     p.id("petId"),
		Reference: OptionalText(p.line("reference", MaxReferenceLength)),
		Oldest:    oneOf(p, "sort", sortOldest) != "",
	}
	return q, p.Err()
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
			return Errorf(InvalidTransition, "this order is %s, which is final", o.Status)
		}
		return Errorf(InvalidTransition, "this order is %s: it can become %s", o.Status, JoinOr(next))
	}
	o.Status, o.UpdatedAt = to, at
	return nil
}

// OrderPatch is a change of an order. A nil field stays as it is, but at least one must be
// set. An empty reference or note removes it.
type OrderPatch struct {
	Status    *OrderStatus  `json:"status,omitempty"`
	Reference *OptionalText `json:"reference,omitempty"`
	Note      *OptionalText `json:"note,omitempty"`
}

// Validate checks what doesn't depend on the order.
func (patch OrderPatch) Validate() error {
	if patch == (OrderPatch{}) {
		return Errorf(ValidationFailed, "nothing to change: send status, reference or note")
	}
	if patch.Status != nil && !slices.Contains(OrderStatuses, *patch.Status) {
		return Errorf(ValidationFailed, "status %s", MustBeOneOf(OrderStatuses))
	}
	if patch.Reference != nil {
		if err := validateReference(*patch.Reference); err != nil {
			return err
		}
	}
	if patch.Note != nil {
		return validateNote(*patch.Note)
	}
	return nil
}

// Apply changes o at the given time, if the patch is valid and allowed for o. A reference
// and note can be changed in any status; the ones that o has already are no change. After
// an error o is unchanged.
func (patch OrderPatch) Apply(o *Order, at Time) error {
	if err := patch.Validate(); err != nil {
		return err
	}
	before := *o
	if patch.Status != nil {
		if err := o.Move(*patch.Status, at); err != nil {
			return err
		}
	}
	if patch.Reference != nil {
		o.Reference = *patch.Reference
	}
	if patch.Note != nil {
		o.Note = *patch.Note
	}
	if *o != before {
		o.UpdatedAt = at
	}
	return nil
}
