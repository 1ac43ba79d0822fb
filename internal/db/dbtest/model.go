package dbtest

import (
	"cmp"
	"maps"
	"slices"

	"animalstore"
	"animalstore/internal/db"
)

// store is the simplest possible store. Every engine must behave like it, however many
// callers there are. It implements the rules itself, so that a bug in the domain
// package is found too.
type store struct {
	pets       map[int64]animalstore.Pet
	orders     map[int64]animalstore.Order
	categories map[int64]string

	petIDs map[int64]bool // assigned so far, including removed pets
}

func newStore() *store {
	return &store{pets: map[int64]animalstore.Pet{}, orders: map[int64]animalstore.Order{}, categories: map[int64]string{}, petIDs: map[int64]bool{}}
}

func (s *store) clone() *store {
	c := *s
	c.pets, c.orders, c.categories, c.petIDs = maps.Clone(s.pets), maps.Clone(s.orders), maps.Clone(s.categories), maps.Clone(s.petIDs)
	return &c
}

func (s *store) equal(o *store) bool {
	return maps.Equal(s.pets, o.pets) && maps.Equal(s.orders, o.orders) && maps.Equal(s.categories, o.categories) && maps.Equal(s.petIDs, o.petIDs)
}

// outcome is what a caller gets, or what its check sees. Fields that don't apply are zero.
type outcome struct {
	Code       animalstore.Code // "": it worked
	Pet        animalstore.Pet
	Order      animalstore.Order
	Category   animalstore.Category
	Created    bool
	Pets       []animalstore.Pet
	Orders     []animalstore.Order
	Categories []animalstore.Category
	Inventory  animalstore.Inventory
}

// notFound stands for [db.ErrNotFound] in an outcome.
const notFound animalstore.Code = "not found"

func refused(code animalstore.Code) outcome { return outcome{Code: code} }

// An operation is a call with its arguments. expect applies it to a store and returns
// the expected outcome. Only a new id, which the engine chooses, is taken from the
// actual outcome: any id that was never assigned. checkIDs checks their order.
type operation interface {
	expect(s *store, got outcome) outcome
}

type (
	createPet struct{ Pet animalstore.NewPet }
	getPet    struct{ ID int64 }
	changePet struct {
		ID       int64
		Name     string // "": unchanged
		Category int64  // 0: unchanged
		Status   animalstore.PetStatus
	}
	deletePet struct{ ID int64 }
	listPets  struct {
		Query animalstore.PetQuery
		Page  db.Page
	}
	countPets struct{ Category *int64 }

	placeOrder struct {
		Pet       int64
		Reference animalstore.OptionalText
		At        animalstore.Time
	}
	getOrder  struct{ ID int64 }
	moveOrder struct {
		ID int64
		To animalstore.OrderStatus
		At animalstore.Time
	}
	listOrders struct {
		Query animalstore.OrderQuery
		Page  db.Page
	}

	getCategory    struct{ ID int64 }
	putCategory    struct{ Category animalstore.Category }
	listCategories struct{ Query db.CategoryQuery }
)

func (o createPet) expect(s *store, got outcome) outcome {
	if got.Pet.ID <= 0 || s.petIDs[got.Pet.ID] {
		return outcome{Pet: animalstore.Pet{ID: -1, Name: o.Pet.Name}} // some new id
	}
	s.petIDs[got.Pet.ID] = true
	pet := animalstore.Pet{ID: got.Pet.ID, Name: o.Pet.Name, CategoryID: o.Pet.CategoryID, Status: cmp.Or(o.Pet.Status, "available")}
	s.setPet(pet)
	return outcome{Pet: pet}
}

// setPet stores a pet, and its category if it is new.
func (s *store) setPet(pet animalstore.Pet) {
	s.pets[pet.ID] = pet
	if _, ok := s.categories[pet.CategoryID]; !ok {
		s.categories[pet.CategoryID] = ""
	}
}

func (o getPet) expect(s *store, _ outcome) outcome {
	pet, ok := s.pets[o.ID]
	if !ok {
		return refused(notFound)
	}
	return outcome{Pet: pet}
}

// ordered reports whether a pet has an open order.
func (s *store) ordered(pet int64) bool {
	for _, o := range s.orders {
		if o.PetID == pet && (o.Status == "placed" || o.Status == "approved") {
			return true
		}
	}
	return false
}

func (o changePet) expect(s *store, _ outcome) outcome {
	pet, ok := s.pets[o.ID]
	if !ok {
		return refused(notFound)
	}
	pet.Name, pet.CategoryID = cmp.Or(o.Name, pet.Name), cmp.Or(o.Category, pet.CategoryID)
	if o.Status != "" && o.Status != pet.Status {
		if pet.Status == "sold" || s.ordered(o.ID) {
			return refused("invalid_transition")
		}
		pet.Status = o.Status
	}
	s.setPet(pet)
	return outcome{Pet: pet}
}

func (o deletePet) expect(s *store, _ outcome) outcome {
	pet, ok := s.pets[o.ID]
	if !ok {
		return refused(notFound)
	}
	if s.ordered(o.ID) {
		return refused("invalid_transition")
	}
	delete(s.pets, o.ID)
	return outcome{Pet: pet}
}

func (o listPets) expect(s *store, _ outcome) outcome {
	return outcome{Pets: selected(newestFirst(s.pets), o.Query, o.Page)}
}

func (o countPets) expect(s *store, _ outcome) outcome {
	var n animalstore.Inventory
	for _, p := range s.pets {
		switch {
		case o.Category != nil && *o.Category != p.CategoryID:
		case p.Status == "available":
			n.Available++
		case p.Status == "pending":
			n.Pending++
		case p.Status == "sold":
			n.Sold++
		}
	}
	return outcome{Inventory: n}
}

func newestFirst[T any](all map[int64]T) []T {
	sorted := make([]T, 0, len(all))
	for _, id := range slices.Backward(slices.Sorted(maps.Keys(all))) {
		sorted = append(sorted, all[id])
	}
	return sorted
}

func (o placeOrder) expect(s *store, got outcome) outcome {
	pet, ok := s.pets[o.Pet]
	switch {
	case !ok:
		return refused(notFound)
	case pet.Status != "available":
		return refused("pet_not_available")
	case got.Order.ID <= 0 || s.orders[got.Order.ID].ID != 0: // an order is never removed
		return outcome{Order: animalstore.Order{ID: -1, PetID: o.Pet}} // some new id
	}
	order := animalstore.Order{ID: got.Order.ID, PetID: o.Pet, Status: "placed", Reference: o.Reference, CreatedAt: o.At, UpdatedAt: o.At}
	s.orders[order.ID] = order
	pet.Status = "pending"
	s.pets[pet.ID] = pet
	return outcome{Order: order}
}

func (o getOrder) expect(s *store, _ outcome) outcome {
	order, ok := s.orders[o.ID]
	if !ok {
		return refused(notFound)
	}
	return outcome{Order: order}
}

// orderSteps are the transitions of an order, with the new status of the pet.
var orderSteps = map[[2]animalstore.OrderStatus]animalstore.PetStatus{
	{"placed", "approved"}:    "pending",
	{"placed", "cancelled"}:   "available",
	{"approved", "delivered"}: "sold",
	{"approved", "cancelled"}: "available",
}

func (o moveOrder) expect(s *store, _ outcome) outcome {
	order, ok := s.orders[o.ID]
	if !ok {
		return refused(notFound)
	}
	status, ok := orderSteps[[2]animalstore.OrderStatus{order.Status, o.To}]
	if !ok {
		return refused("invalid_transition")
	}
	order.Status, order.UpdatedAt = o.To, o.At
	s.orders[order.ID] = order
	pet := s.pets[order.PetID] // it exists: it can't be removed while the order is open
	pet.Status = status
	s.pets[order.PetID] = pet
	return outcome{Order: order}
}

func (o listOrders) expect(s *store, _ outcome) outcome {
	return outcome{Orders: selectedOrders(newestFirst(s.orders), o.Query, o.Page)}
}

func (o getCategory) expect(s *store, _ outcome) outcome {
	name, ok := s.categories[o.ID]
	if !ok {
		return refused(notFound)
	}
	return outcome{Category: animalstore.Category{ID: o.ID, Name: name}}
}

func (o putCategory) expect(s *store, _ outcome) outcome {
	var seen animalstore.Category
	name, ok := s.categories[o.Category.ID]
	if ok {
		seen = animalstore.Category{ID: o.Category.ID, Name: name}
	}
	s.categories[o.Category.ID] = o.Category.Name
	return outcome{Created: !ok, Category: seen}
}

func (o listCategories) expect(s *store, _ outcome) outcome {
	list := []animalstore.Category{}
	for _, id := range slices.Sorted(maps.Keys(s.categories)) {
		if len(list) < o.Query.Limit && (o.Query.After == nil || id > *o.Query.After) {
			list = append(list, animalstore.Category{ID: id, Name: s.categories[id]})
		}
	}
	return outcome{Categories: list}
}

// selected returns the part of a list, newest first, that q selects.
func selected(all []animalstore.Pet, q animalstore.PetQuery, at db.Page) []animalstore.Pet {
	page := []animalstore.Pet{}
	for _, p := range all {
		if len(page) < at.Limit && (q.Status == "" || p.Status == q.Status) && (at.After == 0 || p.ID < at.After) &&
			(q.CategoryID == nil || p.CategoryID == *q.CategoryID) && (q.IDs == nil || slices.Contains(q.IDs, p.ID)) {
			page = append(page, p)
		}
	}
	return page
}

// selectedOrders is like selected, for orders.
func selectedOrders(all []animalstore.Order, q animalstore.OrderQuery, at db.Page) []animalstore.Order {
	page := []animalstore.Order{}
	if q.Oldest {
		all = slices.Clone(all)
		slices.Reverse(all)
	}
	for _, o := range all {
		if len(page) < at.Limit && (len(q.Statuses) == 0 || slices.Contains(q.Statuses, o.Status)) && (q.PetID == 0 || o.PetID == q.PetID) &&
			(q.Reference == "" || o.Reference == q.Reference) && (at.After == 0 || (o.ID < at.After) != q.Oldest && o.ID != at.After) {
			page = append(page, o)
		}
	}
	return page
}
