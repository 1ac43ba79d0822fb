package sqlite

import (
	"context"
	"errors"

	"animalstore"
	"animalstore/internal/db"

	"zombiezen.com/go/sqlite"
)

// listPetsByName reads the pets to examine, from the index alone: first the remaining ones
// with the folded name ?1, then those with later names. These are two queries, because for
// (folded_name, id) > (?1, ?2) SQLite would begin with the first of many equal names.
const (
	listPetsByName = "SELECT * FROM (" + nameColumns + "folded_name = ?1 AND id > ?2 ORDER BY id LIMIT +?4) UNION ALL " +
		"SELECT * FROM (" + nameColumns + "folded_name > ?1 AND folded_name < ?3 ORDER BY folded_name, id LIMIT +?4) LIMIT +?4"
	nameColumns = "SELECT " + petColumns + ", folded_name FROM pets WHERE "
)

// errPageFull stops reading rows.
var errPageFull = errors.New("the page is full")

// PetsByName implements [db.DB].
func (d *DB) PetsByName(ctx context.Context, q db.NameQuery) (pets []animalstore.Pet, next *db.NamePosition, err error) {
	err = d.read(ctx, func(c *sqlite.Conn) (err error) {
		pets, next, err = selectPetsByName(c, q)
		return err
	})
	return pets, next, err
}

func selectPetsByName(c *sqlite.Conn, q db.NameQuery) (pets []animalstore.Pet, next *db.NamePosition, err error) {
	pets = make([]animalstore.Pet, 0, q.Limit)
	start, read := q.Start(), 0
	var last db.NamePosition // of the last pet on the page
	err = selectEach(c, "select pets by name", func(stmt *sqlite.Stmt) error {
		read++
		status := db.FromStored(animalstore.PetStatuses, stmt.ColumnInt64(2))
		switch matches := q.Matches(stmt.ColumnInt64(1), status); {
		case matches && len(pets) == q.Limit:
			next = &last
			return errPageFull
		case matches:
			pet, err := scanPet(stmt)
			if err != nil {
				return err
			}
			pets, last = append(pets, pet), db.NamePosition{Folded: stmt.ColumnText(4), ID: pet.ID}
		}
		if read == db.MaxNamesRead {
			next = &db.NamePosition{Folded: stmt.ColumnText(4), ID: stmt.ColumnInt64(0)}
		}
		return nil
	}, listPetsByName, start.Folded, start.ID, q.End(), db.MaxNamesRead)
	if err != nil && !errors.Is(err, errPageFull) {
		return nil, nil, err
	}
	return pets, next, nil
}
