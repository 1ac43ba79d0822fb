package client

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"animalstore"
)

// CreatePetBatch adds 1 to 100 pets: all of them or none. They are added only once, even if
// the call is retried: see [IdempotencyKey]. Use [Client.ImportPets] for more.
func (c *Client) CreatePetBatch(ctx context.Context, pets []animalstore.NewPet, options ...CallOption) ([]animalstore.Pet, error) {
	batch, err := receive(ctx, c, createPetBatch(pets), options, isBatchOf(len(pets)))
	return batch.Pets, err
}

func createPetBatch(pets []animalstore.NewPet) operation {
	return operation{
		name: "createPetBatch", method: http.MethodPost, path: "/pets/batch",
		body: animalstore.NewPetBatch{Pets: pets}, repeat: replayed,
	}
}

func isBatchOf(n int) func(*animalstore.PetBatch) bool {
	return func(b *animalstore.PetBatch) bool {
		return len(b.Pets) == n && !slices.ContainsFunc(b.Pets, func(p animalstore.Pet) bool { return !isPet(&p) })
	}
}

// PetImport is the progress or the result of [Client.ImportPets].
type PetImport struct {
	// Pets are those that were added, now or by an earlier call, as they were when they were
	// added, in the order of the list. Those that [ImportOptions.Done] skips are missing.
	Pets     []animalstore.Pet
	Added    int // by this call
	Existing int // added by an earlier call with the same pets
	Unknown  int // sent last, but the response was lost: they may have been added
}

// ImportOptions are for [Client.ImportPets].
type ImportOptions struct {
	// Salt makes this another import than those of the same pets with another salt.
	Salt string
	// Done is how many of the pets earlier calls have added, if you know: their batches aren't
	// sent again, which would cost requests.
	Done int
	// OnBatch is called after each batch, if it isn't nil.
	OnBatch func(PetImport)
}

// ImportPets adds any number of pets in their order, as batches of 100, each of which is one
// request, and returns them with their ids. If a pet isn't valid, it adds none.
//
// After an error or a crash, call it again with the same pets, API key and salt, at most
// 24 hours after the first call: pets that were added are returned, but not added again. If
// any pet or their order changes, that is a new import, which adds all of them.
func (c *Client) ImportPets(ctx context.Context, pets []animalstore.NewPet, options ImportOptions) (done PetImport, err error) {
	sum, err := importSum(pets, options.Salt)
	if err != nil {
		return done, fmt.Errorf("importPets: %w", err)
	}
	number := 0    // of the batch
	fresh := false // no earlier call got this far
	for batch := range slices.Chunk(pets, animalstore.MaxPetBatch) {
		number++
		if number*animalstore.MaxPetBatch <= options.Done {
			done.Existing += len(batch)
			continue
		}
		var meta Meta
		key := fmt.Sprintf("import-%s-%d-%d", sum, number, len(batch))
		callOptions := []CallOption{IdempotencyKey(key), ReadMeta(&meta)}
		result, k, err := receiveCall(ctx, c, createPetBatch(batch), callOptions, isBatchOf(len(batch)))
		switch {
		case errors.Is(err, ErrOutcomeUnknown):
			done.Unknown = len(batch)
			return done, err
		case err != nil:
			return done, err
		case !meta.Replayed:
			fresh = true
			done.Added += len(batch)
		case fresh || k.resent:
			done.Added += len(batch)
		default: // an earlier call added this batch, and so those before it
			done.Existing += done.Added + len(batch)
			done.Added = 0
		}
		done.Pets = append(done.Pets, result.Pets...)
		if options.OnBatch != nil {
			options.OnBatch(done)
		}
	}
	return done, nil
}

// importSum identifies an import, for all our clients in the same way.
func importSum(pets []animalstore.NewPet, salt string) (hex string, err error) {
	for i, pet := range pets {
		var invalid *animalstore.Error
		if err := pet.Validate(); errors.As(err, &invalid) {
			return "", animalstore.Errorf(animalstore.ValidationFailed, "pets[%d].%s", i, invalid.Message)
		}
	}
	content, err := animalstore.EncodeJSON([]any{salt, pets})
	return fmt.Sprintf("%x", sha256.Sum256(content)), err
}
