package postgres

import (
	"context"
	"fmt"

	"animalstore"
	"animalstore/internal/db"

	"github.com/jackc/pgx/v5"
)

const insertEntries = "INSERT INTO name_entries (entry, pet_id, shared) "

// nameEntries returns the columns of the entries of a name.
func nameEntries(name string) (entries []string, shared []int64) {
	for _, e := range db.NameEntries(name) {
		entries, shared = append(entries, e.Text), append(shared, int64(e.Shared))
	}
	return entries, shared
}

// deleteNameEntries adds the statement that removes the entries of a pet's name.
func deleteNameEntries(batch *pgx.Batch, pet *animalstore.Pet) {
	entries, _ := nameEntries(pet.Name)
	batch.Queue("DELETE FROM name_entries WHERE entry = ANY ($1) AND pet_id = $2", entries, pet.ID)
}

// petEntry is an entry of a pet's name.
type petEntry struct {
	db.NameEntry
	petID int64
}

// allNameEntries returns the entries of the names of pets.
func allNameEntries(pets []animalstore.Pet) (all []petEntry) {
	for i := range pets {
		for _, e := range db.NameEntries(pets[i].Name) {
			all = append(all, petEntry{e, pets[i].ID})
		}
	}
	return all
}

// listPetsByName examines at most MaxNamesRead entries after the position ($1, $2) and
// before $3, and looks up their pets. It returns the first $4 that are listed at their
// entry and match, and the last entry it examined. LATERAL with a LIMIT keeps PostgreSQL
// from reading all pets instead. With MaxNamesRead as a parameter, it would expect a tenth
// of all entries, and make a new plan for every page.
var listPetsByName = fmt.Sprintf(`SELECT * FROM (
		SELECT pet.*, examined.entry, shared, place FROM (
			SELECT entry, pet_id, shared, row_number() OVER () AS place FROM (
				SELECT entry, pet_id, shared FROM name_entries
				WHERE (entry, pet_id) > ($1, $2) AND entry < $3 ORDER BY entry, pet_id LIMIT %[1]d) AS next
		) AS examined CROSS JOIN LATERAL (SELECT %[2]s FROM pets WHERE id = examined.pet_id LIMIT 1) AS pet
		WHERE shared < $5 AND ($6::smallint IS NULL OR status = $6) AND ($7::bigint IS NULL OR category_id = $7) OR place = %[1]d
		LIMIT $4
	) AS found ORDER BY place`, db.MaxNamesRead, db.PetColumns)

// namedPet is a pet that listPetsByName found.
type namedPet struct {
	pet    animalstore.Pet
	entry  string
	shared int64
	place  int // of the entry among those that were examined, from 1
}

// PetsByName implements [db.DB].
func (d *DB) PetsByName(ctx context.Context, q db.NameQuery) (pets []animalstore.Pet, next *db.NamePosition, err error) {
	query, args := nameListQuery(q)
	found, err := listPage(ctx, d, "select pets by name", db.MaxNamesRead, scanNamedPet, query, args...)
	if err != nil {
		return nil, nil, err
	}
	pets = make([]animalstore.Pet, 0, q.Limit)
	var last db.NamePosition // of the last pet in the page
	for _, f := range found {
		switch matches := q.Lists(f.shared) && q.Matches(f.pet.CategoryID, f.pet.Status); {
		case matches && len(pets) == q.Limit:
			return pets, &last, nil
		case matches:
			pets, last = append(pets, f.pet), db.NamePosition{Entry: f.entry, ID: f.pet.ID}
		}
		if f.place == db.MaxNamesRead {
			next = &db.NamePosition{Entry: f.entry, ID: f.pet.ID}
		}
	}
	return pets, next, nil
}

func nameListQuery(q db.NameQuery) (query string, args []any) {
	start := q.Start()
	var status *int64
	if q.Status != "" {
		status = new(db.StoredIndex(animalstore.PetStatuses, q.Status))
	}
	limit := q.Limit + 1 // to see whether there is a next page
	return listPetsByName, []any{start.Entry, start.ID, q.End(), limit, len(q.Prefix), status, q.CategoryID}
}

func scanNamedPet(row db.Row) (f namedPet, err error) {
	var status int64
	err = row.Scan(&f.pet.ID, &f.pet.CategoryID, &status, &f.pet.Name, &f.entry, &f.shared, &f.place)
	f.pet.Status = db.FromStored(animalstore.PetStatuses, status)
	return f, err
}
