package main

import (
	"math/rand/v2"
	"slices"
	"time"

	"animalstore"
	"animalstore/internal/db"
)

// A sample store has a history of this many days, at whose end it stands. Its
// dates are fixed, because the same seed must give the same store on any day.
const (
	sampleDays = 60
	opensAt    = 9 * time.Hour // after midnight
	openFor    = 9 * time.Hour
)

var (
	sampleEnd   = time.Date(2026, 10, 31, 18, 0, 0, 0, time.UTC)
	sampleBegin = sampleEnd.Add(-opensAt-openFor).AddDate(0, 0, 1-sampleDays) // a midnight
)

const (
	ordersPerPet    = 55 // in a hundred
	cancelledOrders = 12 // in a hundred
	newestFew       = 15 // people order pets that came in lately
)

const (
	sampleChunk = 10_000 // pets that are made and stored at a time
	mostPets    = 1_000_000_000
)

// sample makes up a store by living through its history: pets come in one
// after the other, some are ordered, most orders are delivered after a while, a
// few are cancelled, and those of the last days are still open at the end.
type sample struct {
	random     *rand.Rand
	categories []int64 // the id of each of sampleKinds
	pets       int64   // in all
	made       int64
	chunk      int64 // pets at a time
}

func newSample(seed uint64, pets int64) *sample {
	return &sample{random: rand.New(rand.NewPCG(seed, 0)), pets: pets, chunk: sampleChunk}
}

// next makes the next chunk. Its orders are for its own pets, so that it can
// be stored by itself. Ids count from 1 in each chunk.
func (s *sample) next() db.Rows {
	n := min(s.pets-s.made, s.chunk)
	rows := db.Rows{Pets: make([]animalstore.Pet, 0, n), Orders: make([]animalstore.Order, 0, n)}
	orderable := make([]candidate, 0, n)
	for id := int64(1); id <= n; id++ {
		rows.Pets = append(rows.Pets, animalstore.Pet{
			ID:         id,
			Name:       sampleName(s.random),
			CategoryID: s.categories[anyOf(s.random, kindTable)],
			Status:     animalstore.PetAvailable,
		})
		orderable = append(orderable, candidate{pet: id})
		if s.random.IntN(100) < ordersPerPet {
			orderable = s.order(&rows, orderable, s.clock(s.made+id))
		}
	}
	s.made += n
	return rows
}

// clock is when a pet comes in: they spread evenly over the opening hours.
func (s *sample) clock(pet int64) time.Time {
	const history = int64(sampleDays * openFor / time.Millisecond)
	open := time.Duration(history*pet/(s.pets+1)) * time.Millisecond // cannot overflow: see mostPets
	return sampleBegin.AddDate(0, 0, int(open/openFor)).Add(opensAt + open%openFor)
}

// candidate is a pet that can be ordered once its last order is cancelled.
type candidate struct {
	pet  int64
	from time.Time
}

// order lets somebody order one of the pets, and tells what becomes of it. It
// returns the pets that are left to order.
func (s *sample) order(rows *db.Rows, orderable []candidate, at time.Time) []candidate {
	if len(orderable) == 0 {
		return orderable
	}
	place := len(orderable) - 1 - s.random.IntN(min(len(orderable), newestFew))
	chosen := &orderable[place]
	if chosen.from.After(at) {
		return orderable
	}
	order := animalstore.Order{ID: int64(len(rows.Orders) + 1), PetID: chosen.pet}
	order.Status, order.UpdatedAt = s.fate(at)
	order.CreatedAt = animalstore.At(at)
	rows.Orders = append(rows.Orders, order)
	rows.Pets[chosen.pet-1].Status = order.Status.PetStatus()
	if order.Status == animalstore.OrderCancelled {
		chosen.from = order.UpdatedAt.Time
		return orderable
	}
	return slices.Delete(orderable, place, place+1)
}

// fate is how far an order of that time has come, and since when.
func (s *sample) fate(at time.Time) (animalstore.OrderStatus, animalstore.Time) {
	approved := at.Add(s.upTo(48 * time.Hour))
	settled := at.Truncate(24*time.Hour).AddDate(0, 0, 1+s.random.IntN(12)).Add(opensAt + s.upTo(openFor))
	cancelled := s.random.IntN(100) < cancelledOrders
	switch {
	case approved.After(sampleEnd):
		return animalstore.OrderPlaced, animalstore.At(at)
	case settled.After(sampleEnd):
		return animalstore.OrderApproved, animalstore.At(approved)
	case cancelled:
		return animalstore.OrderCancelled, animalstore.At(settled)
	}
	return animalstore.OrderDelivered, animalstore.At(settled)
}

// upTo is a span of some minutes at least.
func (s *sample) upTo(most time.Duration) time.Duration {
	return 5*time.Minute + time.Duration(s.random.Int64N(int64(most-5*time.Minute)))
}

// renumber moves the ids of a chunk behind those that were given before.
func renumber(rows *db.Rows, lastPet, lastOrder int64) {
	for i := range rows.Pets {
		rows.Pets[i].ID += lastPet
	}
	for i := range rows.Orders {
		rows.Orders[i].ID += lastOrder
		rows.Orders[i].PetID += lastPet
	}
}
