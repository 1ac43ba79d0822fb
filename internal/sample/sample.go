// Package sample generates stores: pets with names, in named categories, and orders
// that agree with the status of each pet.
package sample

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"time"

	"animalstore"
)

// A sample store has 60 days of history. Its dates are fixed, because the same
// seed must give the same store on any day.
const (
	days    = 60
	opensAt = 9 * time.Hour // after midnight
	openFor = 9 * time.Hour
)

var (
	end   = time.Date(2026, 10, 31, 18, 0, 0, 0, time.UTC)
	begin = end.Add(-opensAt-openFor).AddDate(0, 0, 1-days) // a midnight
)

const (
	orderPercent  = 55 // orders per hundred pets
	cancelPercent = 12 // cancelled ones per hundred settled orders
	newestFew     = 15 // customers order one of the newest pets
)

const (
	// MaxPets is the size of the largest store.
	MaxPets = 1_000_000_000
	// photoBatch is the number of pets in a batch with photos, which take more memory.
	photoBatch = 200
	// DefaultBatchSize is the number of pets in a batch unless Store says otherwise.
	DefaultBatchSize = 10_000
)

// Store describes a sample store. The same values always give the same store,
// in this version and in later ones.
type Store struct {
	Seed uint64
	Pets int64 // at most MaxPets
	// CategoryIDs are the ids of the categories, in the order of Categories.
	// If it is nil they are 1, 2, 3 and so on.
	CategoryIDs []int64
	// Photos is how many of the last pets have a photo.
	Photos int64
	// BatchSize is the number of pets in a batch; 0 means DefaultBatchSize.
	BatchSize int64
}

// Batch is a part of a store that can be stored separately: its orders are for pets in
// the same batch. Ids start from 1 in each batch.
type Batch struct {
	Pets   []animalstore.Pet
	Orders []animalstore.Order

	seed   uint64
	before int64 // pets in earlier batches
	photos int64 // how many of the last pets have one
}

// Categories returns the categories of the store's pets.
func (s Store) Categories() []animalstore.Category {
	categories := make([]animalstore.Category, len(kinds))
	for i, kind := range kinds {
		categories[i] = animalstore.Category{ID: int64(i + 1), Name: kind.name}
		if s.CategoryIDs != nil {
			categories[i].ID = s.CategoryIDs[i]
		}
	}
	return categories
}

// Batches generates the store's pets and orders. Each loop starts from the beginning.
func (s Store) Batches() iter.Seq[Batch] {
	size := s.BatchSize
	if size == 0 {
		size = DefaultBatchSize
	}
	if s.Photos > 0 {
		size = min(size, photoBatch)
	}
	return func(yield func(Batch) bool) {
		h := &history{random: rand.New(rand.NewPCG(s.Seed, 0)), categories: s.Categories(), pets: s.Pets}
		for h.made < s.Pets {
			b := h.next(min(s.Pets-h.made, size))
			b.seed, b.before = s.Seed, h.made-int64(len(b.Pets))
			b.photos = min(int64(len(b.Pets)), max(0, h.made-(s.Pets-s.Photos)))
			if !yield(b) {
				return
			}
		}
	}
}

// End is when the history of a store ends.
var End = animalstore.At(end)

// history generates a store by simulating it: pets arrive sequentially, some are
// ordered, most orders are delivered after a while, a few are cancelled, and orders of
// the last days are still open at the end.
type history struct {
	random     *rand.Rand
	categories []animalstore.Category
	pets       int64 // in all
	made       int64
}

func (h *history) next(n int64) Batch {
	b := Batch{Pets: make([]animalstore.Pet, 0, n), Orders: make([]animalstore.Order, 0, n)}
	orderable := make([]candidate, 0, n)
	for id := int64(1); id <= n; id++ {
		b.Pets = append(b.Pets, animalstore.Pet{
			ID:         id,
			Name:       petName(h.random),
			CategoryID: h.categories[pick(h.random, kindTable)].ID,
			Status:     animalstore.PetAvailable,
		})
		orderable = append(orderable, candidate{pet: id})
		if h.random.IntN(100) < orderPercent {
			orderable = h.order(&b, orderable, h.arrival(h.made+id))
		}
	}
	h.made += n
	return b
}

// arrival is when a pet arrives. Arrivals are spread evenly over opening hours.
func (h *history) arrival(pet int64) time.Time {
	const total = int64(days * openFor / time.Millisecond)
	open := time.Duration(total*pet/(h.pets+1)) * time.Millisecond // MaxPets keeps this from overflowing
	return begin.AddDate(0, 0, int(open/openFor)).Add(opensAt + open%openFor)
}

var notes = []animalstore.OptionalText{
	"collects on Saturday", "has a second pet at home, needs an introduction", "call before delivery", "a gift: no invoice in the box",
	"wants the food it is used to",
}

// candidate is a pet that can be ordered, starting when its last order was cancelled.
type candidate struct {
	pet  int64
	from time.Time
}

// order adds an order for one of the pets and returns the pets that can still be
// ordered.
func (h *history) order(b *Batch, orderable []candidate, at time.Time) []candidate {
	if len(orderable) == 0 {
		return orderable
	}
	place := len(orderable) - 1 - h.random.IntN(min(len(orderable), newestFew))
	chosen := &orderable[place]
	if chosen.from.After(at) {
		return orderable
	}
	order := animalstore.Order{ID: int64(len(b.Orders) + 1), PetID: chosen.pet}
	order.Status, order.UpdatedAt = h.outcome(at)
	order.CreatedAt = animalstore.At(at)
	if order.ID%3 == 0 {
		order.Reference = animalstore.OptionalText(fmt.Sprintf("W-%05d", order.ID))
	}
	if order.ID%7 == 0 {
		order.Note = notes[order.ID/7%int64(len(notes))]
	}
	b.Orders = append(b.Orders, order)
	b.Pets[chosen.pet-1].Status = order.Status.PetStatus()
	if order.Status == animalstore.OrderCancelled {
		chosen.from = order.UpdatedAt.Time
		return orderable
	}
	return slices.Delete(orderable, place, place+1)
}

// outcome returns the status of an order placed at that time, and when it reached that
// status.
func (h *history) outcome(at time.Time) (animalstore.OrderStatus, animalstore.Time) {
	approved := at.Add(h.upTo(48 * time.Hour))
	settled := at.Truncate(24*time.Hour).AddDate(0, 0, 1+h.random.IntN(12)).Add(opensAt + h.upTo(openFor))
	cancelled := h.random.IntN(100) < cancelPercent
	switch {
	case approved.After(end):
		return animalstore.OrderPlaced, animalstore.At(at)
	case settled.After(end):
		return animalstore.OrderApproved, animalstore.At(approved)
	case cancelled:
		return animalstore.OrderCancelled, animalstore.At(settled)
	}
	return animalstore.OrderDelivered, animalstore.At(settled)
}

// upTo is a random duration of at least five minutes.
func (h *history) upTo(most time.Duration) time.Duration {
	return 5*time.Minute + time.Duration(h.random.Int64N(int64(most-5*time.Minute)))
}
