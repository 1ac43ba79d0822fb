package sqlite

import (
	"context"
	"errors"

	"animalstore"
	"animalstore/internal/db"

	"zombiezen.com/go/sqlite"
)

// insertNameEntries adds the entries of a pet's name.
func insertNameEntries(c *sqlite.Conn, pet *animalstore.Pet) error {
	for _, e := range db.NameEntries(pet.Name) {
		if err := execute(c, "insert entry of name", "INSERT INTO name_entries (entry, pet_id, shared) VALUES (?, ?, ?)", e.Text, pet.ID, e.Shared); err != nil {
			return err
		}
	}
	return nil
}

// deleteNameEntries removes the entries of a pet's name.
func deleteNameEntries(c *sqlite.Conn, pet *animalstore.Pet) error {
	for _, e := range db.NameEntries(pet.Name) {
		if err := execute(c, "delete entry of name", "DELETE FROM name_entries WHERE entry = ? AND pet_id = ?", e.Text, pet.ID); err != nil {
			return err
		}
	}
	return nil
}

// listPetsByName reads the entries to examine with their pets: first the remaining ones
// that equal ?1, then the later ones. These are two queries, because for
// (entry, pet_id) > (?1, ?2) SQLite would begin with the first of many equal entries.
const (
	listPetsByName = "SELECT * FROM (" + nameColumns + "entry = ?1 AND pet_id > ?2 ORDER BY pet_id LIMIT +?4) UNION ALL " +
		"SELECT * FROM (" + nameColumns + "entry > ?1 AND entry < ?3 ORDER BY entry, pet_id LIMIT +?4) LIMIT +?4"
	nameColumns = "SELECT " + db.PetColumns + ", entry, shared FROM name_entries CROSS JOIN pets ON id = pet_id WHERE "
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
	err = selectEach(c, "select pets by name", func(stmt row) error {
		read++
		status := db.FromStored(animalstore.PetStatuses, stmt.ColumnInt64(2))
		switch matches := q.Lists(stmt.ColumnInt64(5)) && q.Matches(stmt.ColumnInt64(1), status); {
		case matches && len(pets) == q.Limit:
			next = &last
			return errPageFull
		case matches:
			pet, err := scanPet(stmt)
			if err != nil {
				return err
			}
			pets, last = append(pets, pet), db.NamePosition{Entry: stmt.ColumnText(4), ID: pet.ID}
		}
		if read == db.MaxNamesRead {
			next = &db.NamePosition{Entry: stmt.ColumnText(4), ID: stmt.ColumnInt64(0)}
		}
		return nil
	}, listPetsByName, start.Entry, start.ID, q.End(), db.MaxNamesRead)
	if err != nil && !errors.Is(err, errPageFull) {
		return nil, nil, err
	}
	return pets, next, nil
}
