package db

import (
	"context"
	"fmt"
	"unicode/utf8"

	"animalstore"
)

// Pets stores pets.
type Pets interface {
	// CreatePet adds a pet that passed Validate, and its category if it doesn't exist.
	// An empty status means available. idempotency may be nil.
	CreatePet(ctx context.Context, p animalstore.NewPet, idempotency *Idempotency) (pet animalstore.Pet, replayed bool, err error)

	// CreatePets does the same as CreatePet for several pets, all of them or none. Their
	// ids ascend in the order given.
	CreatePets(ctx context.Context, pets []animalstore.NewPet, idempotency *Idempotency) (created []animalstore.Pet, replayed bool, err error)

	// Pet returns one pet.
	Pet(ctx context.Context, id int64) (animalstore.Pet, error)

	// UpdatePet calls change with a pet and stores the result, and its category if it
	// doesn't exist. ordered reports whether the pet has an open order.
	UpdatePet(ctx context.Context, id int64, change func(p *animalstore.Pet, ordered bool) error) (animalstore.Pet, error)

	// DeletePet removes a pet if check returns nil. ordered reports whether the
	// pet has an open order.
	DeletePet(ctx context.Context, id int64, check func(p *animalstore.Pet, ordered bool) error) error

	// Pets returns a page of the pets that match q, except its name: PetsByName finds
	// those. They are in descending order of id. The cost depends on the size of the page,
	// not on the number of pets stored.
	Pets(ctx context.Context, q animalstore.PetQuery, page Page) ([]animalstore.Pet, error)
}

// Page is a part of a list.
type Page struct {
	After int64 // only what comes after the entry with this id, in the order of the list; 0: from the start
	Limit int   // at least 1
}

// PetLists are the statements for lists of pets. Their parameters are the exclusive upper
// bound of ids and the limit, then the category and the status, as far as they have them,
// or the ids and the optional status and category.
type PetLists struct{ All, ByStatus, ByCategory, ByBoth, ByID string }

// Statement returns the statement for a page and its arguments.
func (lists *PetLists) Statement(q animalstore.PetQuery, page Page) (statement string, args []any) {
	args = []any{UpperBound(page.After), page.Limit}
	var status *int64
	if q.Status != "" {
		status = new(StoredIndex(animalstore.PetStatuses, q.Status))
	}
	switch {
	case q.IDs != nil:
		return lists.ByID, append(args, q.IDs, status, q.CategoryID)
	case q.CategoryID != nil && status != nil:
		return lists.ByBoth, append(args, *q.CategoryID, *status)
	case q.CategoryID != nil:
		return lists.ByCategory, append(args, *q.CategoryID)
	case status != nil:
		return lists.ByStatus, append(args, *status)
	}
	return lists.All, args
}

// PetColumns are read by [ScanPet].
const PetColumns = "id, category_id, status, name"

// ScanPet scans a pet.
func ScanPet(row Row) (animalstore.Pet, error) {
	var pet animalstore.Pet
	var status int64
	err := row.Scan(&pet.ID, &pet.CategoryID, &status, &pet.Name)
	pet.Status = FromStored(animalstore.PetStatuses, status)
	if err == nil {
		err = CheckPet(&pet)
	}
	return pet, err
}

// CheckPet returns an error for a pet that this program can't have stored.
func CheckPet(p *animalstore.Pet) error {
	if p.ID <= 0 || p.Status == "" || p.Name == "" || !utf8.ValidString(p.Name) {
		return fmt.Errorf("%w: pet %d", errDamagedRow, p.ID)
	}
	return nil
}
