package client_test

import (
	"errors"
	"fmt"
	"testing"

	"animalstore"
	"animalstore/client"
)

// world is a store with the resources for one change. The client clean is never
// disturbed by faults.
type world struct {
	t      *testing.T
	clean  *client.Client
	number int
	what   string // the case, for messages
	name   string
	pet    animalstore.Pet
	order  animalstore.Order
	added  animalstore.Pet
	placed animalstore.Order
}

func (w *world) prepare() {
	w.number++
	w.added, w.placed = animalstore.Pet{}, animalstore.Order{}
	w.name = fmt.Sprintf("%s %d", w.t.Name(), w.number)
	w.name = w.name[max(0, len(w.name)-100):]
	var err error
	if w.pet, err = w.clean.CreatePet(w.t.Context(), animalstore.NewPet{Name: "prepared", CategoryID: 1}); err != nil {
		w.t.Error(err)
	}
	ordered, err := w.clean.CreatePet(w.t.Context(), animalstore.NewPet{Name: "ordered", CategoryID: 1})
	if err != nil {
		w.t.Error(err)
	}
	if w.order, err = w.clean.PlaceOrder(w.t.Context(), animalstore.NewOrder{PetID: ordered.ID}); err != nil {
		w.t.Error(err)
	}
}

// change is an operation that changes something, and a count of how often the change
// was made in the store.
type change struct {
	name    string
	mayFail bool // a single fault may make it fail
	make    func(w *world, c *client.Client) error
	times   func(w *world) int
}

var changes = []change{
	{"createPet", false,
		func(w *world, c *client.Client) (err error) {
			w.added, err = c.CreatePet(w.t.Context(), animalstore.NewPet{Name: w.name, CategoryID: 2})
			return err
		},
		func(w *world) (n int) {
			for _, p := range collect(w.t, w.clean.ListPets(w.t.Context(), client.PetQuery{CategoryID: new(int64(2))})) {
				if p.Name == w.name {
					n++
					if w.added.ID != 0 && w.added != p {
						w.t.Errorf("%s: got %+v, want %+v", w.what, w.added, p)
					}
				}
			}
			return n
		}},
	{"placeOrder", false,
		func(w *world, c *client.Client) (err error) {
			w.placed, err = c.PlaceOrder(w.t.Context(), animalstore.NewOrder{PetID: w.pet.ID})
			return err
		},
		func(w *world) int {
			orders := collect(w.t, w.clean.ListOrders(w.t.Context(), client.OrderQuery{PetID: w.pet.ID}))
			if w.placed.ID != 0 && (len(orders) == 0 || orders[0] != w.placed) {
				w.t.Errorf("%s: got %+v, want %+v", w.what, w.placed, orders)
			}
			return len(orders)
		}},
	{"updatePet", false,
		func(w *world, c *client.Client) error {
			_, err := c.UpdatePet(w.t.Context(), w.pet.ID, animalstore.PetPatch{Name: &w.name})
			return err
		},
		func(w *world) int {
			pet, err := w.clean.FindPet(w.t.Context(), w.pet.ID)
			return once(w.t, err, pet.Name == w.name)
		}},
	{"updatePet if it matches", true,
		func(w *world, c *client.Client) error {
			var m client.Meta
			if _, err := w.clean.GetPet(w.t.Context(), w.pet.ID, client.ReadMeta(&m)); err != nil {
				return err
			}
			_, err := c.UpdatePet(w.t.Context(), w.pet.ID, animalstore.PetPatch{Name: &w.name}, client.IfMatch(m.ETag))
			return err
		},
		func(w *world) int {
			pet, err := w.clean.FindPet(w.t.Context(), w.pet.ID)
			return once(w.t, err, pet.Name == w.name)
		}},
	{"deletePet", false,
		func(w *world, c *client.Client) error { return c.DeletePet(w.t.Context(), w.pet.ID) },
		func(w *world) int {
			_, err := w.clean.FindPet(w.t.Context(), w.pet.ID)
			var coded *animalstore.Error
			if errors.As(err, &coded) && coded.Code == animalstore.PetNotFound {
				return 1
			}
			return once(w.t, err, false)
		}},
	{"updateOrder", true,
		func(w *world, c *client.Client) error {
			_, err := c.UpdateOrder(w.t.Context(), w.order.ID, animalstore.OrderPatch{Status: new(animalstore.OrderApproved)})
			return err
		},
		func(w *world) int {
			order, err := w.clean.GetOrder(w.t.Context(), w.order.ID)
			return once(w.t, err, order.Status == animalstore.OrderApproved)
		}},
	{"putCategory", false,
		func(w *world, c *client.Client) error {
			_, err := c.PutCategory(w.t.Context(), animalstore.Category{ID: int64(100 + w.number), Name: w.name})
			return err
		},
		func(w *world) int {
			category, err := w.clean.GetCategory(w.t.Context(), int64(100+w.number))
			var coded *animalstore.Error
			if errors.As(err, &coded) && coded.Code == animalstore.CategoryNotFound {
				return 0
			}
			return once(w.t, err, category.Name == w.name)
		}},
	{"createKey", true,
		func(w *world, c *client.Client) error {
			key, err := c.CreateKey(w.t.Context(), client.NewKey{Name: w.name})
			if err == nil && key.Secret == "" {
				w.t.Errorf("%s: got %v without a secret", w.what, key)
			}
			return err
		},
		func(w *world) (n int) {
			for _, k := range collect(w.t, w.clean.ListKeys(w.t.Context(), client.PageQuery{})) {
				if k.Name == w.name {
					n++
				}
			}
			return n
		}},
}

func once(t *testing.T, err error, done bool) int {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
	if done {
		return 1
	}
	return 0
}

// verify compares the reported outcome of a change with the store.
func (w *world) verify(c change, err error) {
	w.t.Helper()
	got := c.times(w)
	switch {
	case err == nil && got != 1:
		w.t.Errorf("%s: reported as done, but made %d times in the store, want once", w.what, got)
	case errors.Is(err, client.ErrOutcomeUnknown) && got > 1:
		w.t.Errorf("%s: made %d times in the store, want at most once", w.what, got)
	case err != nil && !errors.Is(err, client.ErrOutcomeUnknown) && got != 0:
		w.t.Errorf("%s: reported as not done (%v), but made %d times in the store, want none", w.what, err, got)
	}
}
