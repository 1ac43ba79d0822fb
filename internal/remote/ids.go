package remote

import (
	"context"
	"iter"
	"strconv"

	"animalstore"
	"animalstore/client"
)

// MaxPage is the largest page that a server returns.
const MaxPage = 100

// Lister lists what completion chooses ids from. typed is the beginning of the id.
type Lister[T any] func(ctx context.Context, c *client.Client, typed string) iter.Seq2[T, error]

// Every turns a method of the client that lists a resource into a Lister of everything.
func Every[T, Q any](list func(*client.Client, context.Context, Q, ...client.CallOption) iter.Seq2[T, error]) Lister[T] {
	return func(ctx context.Context, c *client.Client, _ string) iter.Seq2[T, error] {
		var all Q
		return list(c, ctx, all)
	}
}

// List lists from a server, or nothing if there can't be a client.
func List[T any](ctx context.Context, s Server, key string, list Lister[T], typed string) iter.Seq2[T, error] {
	if c := s.QuietClient(key); c != nil {
		return list(ctx, c, typed)
	}
	return func(func(T, error) bool) {}
}

// PetsThatBegin lists pets for completion: those whose ids begin with these digits, or
// all if there are none. A large store has many more pets than one page.
func PetsThatBegin(ctx context.Context, c *client.Client, digits string) iter.Seq2[animalstore.Pet, error] {
	return c.ListPets(ctx, client.PetQuery{IDs: idsThatBegin(digits)})
}

// idsThatBegin are the lowest ids that begin with these digits, as many as a request
// may ask for; nil, for all ids, if there are no digits.
func idsThatBegin(digits string) []int64 {
	first, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || first < 1 {
		return nil
	}
	var ids []int64
	for span := int64(1); len(ids) < MaxPage && first < 1<<50; span, first = span*10, first*10 {
		for i := int64(0); i < span && len(ids) < MaxPage; i++ {
			ids = append(ids, first+i)
		}
	}
	return ids
}

// FindPets returns the pets with these ids, in the same order, to be removed.
func FindPets(ctx context.Context, c *client.Client, ids []int64) ([]animalstore.Pet, error) {
	found := map[int64]animalstore.Pet{}
	for pet, err := range c.ListPets(ctx, client.PetQuery{IDs: ids}) {
		if err != nil {
			return nil, err
		}
		found[pet.ID] = pet
	}
	var sorted []animalstore.Pet
	for _, id := range ids {
		pet, ok := found[id]
		if !ok {
			return nil, animalstore.Errorf(animalstore.PetNotFound, "there is no pet with id %d, so nothing was removed", id)
		}
		sorted = append(sorted, pet)
	}
	return sorted, nil
}
