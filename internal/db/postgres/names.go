package postgres

import (
	"context"

	"animalstore"
	"animalstore/internal/db"

	"github.com/jackc/pgx/v5"
)

// listPetsByName looks at the pets after the position ($1, $2) whose folded name is below
// $3, at most $4, and returns the first $5 that match and the last one it looked at. It
// reads the index alone until it knows which pets to return.
const listPetsByName = `SELECT pets.id, pets.category_id, pets.status, pets.name, found.folded_name, found.place FROM (
		SELECT looked.* FROM (
			SELECT folded_name, id, status, category_id, row_number() OVER () AS place FROM (
				SELECT folded_name, id, status, category_id FROM pets
				WHERE (folded_name, id) > ($1, $2) AND folded_name < $3 ORDER BY folded_name, id LIMIT $4) AS next
		) AS looked
		WHERE ($6::smallint IS NULL OR status = $6) AND ($7::bigint IS NULL OR category_id = $7) OR place = $4
		LIMIT $5
	) AS found JOIN pets ON pets.id = found.id ORDER BY found.place`

// namedPet is a pet that listPetsByName found.
type namedPet struct {
	pet    animalstore.Pet
	folded string
	place  int
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
	var status *int64
	if q.Status != "" {
		status = new(db.StoredIndex(animalstore.PetStatuses, q.Status))
	}
	limit := q.Limit + 1 // to see whether there is a next page
	read := limit
	if q.Status != "" || q.CategoryID != nil {
		read = db.MaxNamesRead
	}
	return listPage(ctx, d, "select pets by name", read, scanNamedPet, listPetsByName,
		start.Folded, start.ID, q.End(), db.MaxNamesRead, limit, status, q.CategoryID)
}

func scanNamedPet(row pgx.Row) (f namedPet, err error) {
	var status int64
	err = row.Scan(&f.pet.ID, &f.pet.CategoryID, &status, &f.pet.Name, &f.folded, &f.place)
	f.pet.Status = db.FromStored(animalstore.PetStatuses, status)
	return f, err
}
