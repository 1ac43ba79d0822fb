package postgres

import (
	"context"
	"fmt"

	"animalstore"
	"animalstore/internal/db"

	"github.com/jackc/pgx/v5"
)

// afterName selects pets in order from the position ($1, $2), whose folded name is below $3.
const afterName = " FROM pets WHERE (folded_name, id) > ($1, $2) AND folded_name < $3 ORDER BY folded_name, id LIMIT "

// listPetsByName returns the first $4 pets.
const listPetsByName = "SELECT id, category_id, status, name, folded_name, 0" + afterName + "$4"

// filterPetsByName examines MaxNamesRead pets, and returns the first $4 that match and the
// last one it examined. It reads the index alone until it knows which pets to return. With
// MaxNamesRead as a parameter, PostgreSQL would expect a tenth of all pets instead, and
// make a new plan for every page.
var filterPetsByName = fmt.Sprintf(`SELECT pets.id, pets.category_id, pets.status, pets.name, found.folded_name, found.place FROM (
		SELECT examined.* FROM (
			SELECT folded_name, id, status, category_id, row_number() OVER () AS place FROM (
				SELECT folded_name, id, status, category_id %s %[2]d) AS next
		) AS examined
		WHERE ($5::smallint IS NULL OR status = $5) AND ($6::bigint IS NULL OR category_id = $6) OR place = %[2]d
		LIMIT $4
	) AS found JOIN pets ON pets.id = found.id ORDER BY found.place`, afterName, db.MaxNamesRead)

// namedPet is a pet that one of them found.
type namedPet struct {
	pet    animalstore.Pet
	folded string
	place  int // among those that a filter examined, from 1
}

// PetsByName implements [db.DB].
func (d *DB) PetsByName(ctx context.Context, q db.NameQuery) (pets []animalstore.Pet, next *db.NamePosition, err error) {
	found, err := d.readNames(ctx, q)
	if err != nil {
		return nil, nil, err
	}
	pets = make([]animalstore.Pet, 0, q.Limit)
	var last db.NamePosition // of the last pet in the page
	for _, f := range found {
		switch matches := q.Matches(f.pet.CategoryID, f.pet.Status); {
		case matches && len(pets) == q.Limit:
			return pets, &last, nil
		case matches:
			pets, last = append(pets, f.pet), db.NamePosition{Folded: f.folded, ID: f.pet.ID}
		}
		if f.place == db.MaxNamesRead {
			next = &db.NamePosition{Folded: f.folded, ID: f.pet.ID}
		}
	}
	return pets, next, nil
}

func (d *DB) readNames(ctx context.Context, q db.NameQuery) ([]namedPet, error) {
	start := q.Start()
	limit := q.Limit + 1 // to see whether there is a next page
	args := []any{start.Folded, start.ID, q.End(), limit}
	if q.Status == "" && q.CategoryID == nil {
		return listPage(ctx, d, "select pets by name", limit, scanNamedPet, listPetsByName, args...)
	}
	var status *int64
	if q.Status != "" {
		status = new(db.StoredIndex(animalstore.PetStatuses, q.Status))
	}
	return listPage(ctx, d, "select pets by name", db.MaxNamesRead, scanNamedPet, filterPetsByName, append(args, status, q.CategoryID)...)
}

func scanNamedPet(row pgx.Row) (f namedPet, err error) {
	var status int64
	err = row.Scan(&f.pet.ID, &f.pet.CategoryID, &status, &f.pet.Name, &f.folded, &f.place)
	f.pet.Status = db.FromStored(animalstore.PetStatuses, status)
	return f, err
}
