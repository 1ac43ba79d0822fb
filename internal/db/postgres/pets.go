package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"animalstore"
	"animalstore/internal/db"

	"github.com/jackc/pgx/v5"
)

// A status is stored as its index in the domain's list.
var (
	petStatuses   = animalstore.PetStatuses
	orderStatuses = animalstore.OrderStatuses
)

// statusIndex panics if s is unknown: callers have validated it.
func statusIndex[S comparable](all []S, s S) int16 {
	for i, known := range all {
		if known == s {
			return int16(i)
		}
	}
	panic(fmt.Sprintf("status %v passed validation but is unknown", s))
}

const petColumns = "id, category_id, status, name"

// insertPet adds a pet, its category if that doesn't exist, and the events of both in
// one statement, so that all are stored or none. $4 is the pet's JSON from behind the id.
const insertPet = `WITH pet AS (INSERT INTO pets (name, category_id, status) VALUES ($1, $2, $3) RETURNING id),
	category AS (INSERT INTO categories (id, name) VALUES ($2, '') ON CONFLICT DO NOTHING RETURNING id),
	event AS (` + addEvents + `
		SELECT 0, id, $5::bigint, $6::bigint, $7, '{"id":' || id || $4 FROM pet UNION ALL
		SELECT 5, id, $5, $6, $7, '{"id":' || id || ',"name":""}' FROM category)
	SELECT id FROM pet`

// insertPetArgs are the arguments of insertPet for a pet without an id.
func insertPetArgs(by db.Actor, pet *animalstore.Pet) []any {
	return eventArgs(by, pet.Name, pet.CategoryID, statusIndex(petStatuses, pet.Status), string(pet.AppendJSONAfterID(make([]byte, 0, 128))))
}

// updatePet stores a pet, its category if that doesn't exist, and the events of both.
const updatePet = `WITH pet AS (UPDATE pets SET name = $2, category_id = $3, status = $4 WHERE id = $1 RETURNING id),
	category AS (INSERT INTO categories (id, name) VALUES ($3, '') ON CONFLICT DO NOTHING RETURNING id)
	` + addEvents + `
	SELECT 1, id, $6::bigint, $7::bigint, $8, $5 FROM pet UNION ALL
	SELECT 5, id, $6, $7, $8, '{"id":' || id || ',"name":""}' FROM category`

const deletePet = "WITH pet AS (DELETE FROM pets WHERE id = $1 RETURNING id) " + addEvents +
	"SELECT 2, id, $3::bigint, $4::bigint, $5, $2 FROM pet"

// CreatePet implements [db.DB].
func (d *DB) CreatePet(ctx context.Context, p animalstore.NewPet, retry *db.Idempotency) (pet animalstore.Pet, replayed bool, err error) {
	if p.Status == "" {
		p.Status = animalstore.PetAvailable
	}
	by := db.ActorOf(ctx)
	if retry == nil {
		pet = animalstore.Pet{Name: p.Name, CategoryID: p.CategoryID, Status: p.Status}
		created, err := d.creates.value(ctx, d, &newPet{pet, by})
		pet.ID = created.id
		return pet, false, cmp.Or(err, created.err)
	}
	err = d.write(ctx, func(ctx context.Context, tx pgx.Tx) (err error) {
		replayed, err = writeOrReplay(ctx, tx, retry, &pet, func() error {
			pet = animalstore.Pet{Name: p.Name, CategoryID: p.CategoryID, Status: p.Status}
			err := tx.QueryRow(ctx, insertPet, insertPetArgs(by, &pet)...).Scan(&pet.ID)
			return failed("insert pet", err)
		})
		return err
	})
	return pet, replayed, err
}

const selectPet = "SELECT " + petColumns + " FROM pets WHERE id = $1"

// Pet implements [db.DB].
func (d *DB) Pet(ctx context.Context, id int64) (animalstore.Pet, error) {
	found, err := d.gets.value(ctx, d, id)
	if err == nil && !found.found {
		err = db.ErrNotFound
	}
	return found.pet, err
}

// lockPet returns a pet that nobody else can change until the transaction ends, and
// whether it has an open order. That takes a second statement: one that waits for a lock
// sees the current state of the locked row, but everything else as of its start.
func lockPet(ctx context.Context, tx pgx.Tx, id int64) (pet animalstore.Pet, ordered bool, err error) {
	if pet, err = lockOne(ctx, tx, "lock pet", scanPet, selectPet, id); err != nil {
		return pet, false, err
	}
	err = tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM orders WHERE pet_id = $1 AND status <= 1)", id).Scan(&ordered)
	return pet, ordered, failed("select open order", err)
}

// UpdatePet implements [db.DB].
func (d *DB) UpdatePet(ctx context.Context, id int64, change func(*animalstore.Pet, bool) error) (animalstore.Pet, error) {
	var pet animalstore.Pet
	by := db.ActorOf(ctx)
	err := d.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var ordered bool
		var err error
		if pet, ordered, err = lockPet(ctx, tx, id); err != nil {
			return err
		}
		before := pet
		if err := change(&pet, ordered); err != nil || pet == before {
			return err
		}
		_, err = tx.Exec(ctx, updatePet, eventArgs(by, id, pet.Name, pet.CategoryID, statusIndex(petStatuses, pet.Status), db.EventData(&pet))...)
		return failed("update pet", err)
	})
	return pet, err
}

// DeletePet implements [db.DB].
func (d *DB) DeletePet(ctx context.Context, id int64, check func(*animalstore.Pet, bool) error) error {
	by := db.ActorOf(ctx)
	return d.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		pet, ordered, err := lockPet(ctx, tx, id)
		if err != nil {
			return err
		}
		if err := check(&pet, ordered); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, deletePet, eventArgs(by, id, db.EventData(&pet))...)
		return failed("delete pet", err)
	})
}

// Parameters of a list: $1 is the upper bound of ids, $2 the limit, then come the
// values of the filters. A list with a filter compares and orders by all columns of its
// index, which only that index can serve. With the filter alone, the planner would scan
// the primary key if it thinks that the status is common, and the matching pets may all
// be old.
var (
	listPets         = "SELECT " + petColumns + " FROM pets WHERE id < $1 ORDER BY id DESC LIMIT $2"
	listPetsByStatus = "SELECT " + petColumns + ` FROM pets
		WHERE (status, id) < ($3, $1) AND status >= $3 ORDER BY status DESC, id DESC LIMIT $2`
	listPetsByBoth = "SELECT " + petColumns + ` FROM pets
		WHERE (category_id, status, id) < ($3, $4, $1) AND (category_id, status) >= ($3, $4)
		ORDER BY category_id DESC, status DESC, id DESC LIMIT $2`
	listPetsByCategory = mergeStatuses(len(petStatuses), "SELECT "+petColumns+` FROM pets
		WHERE (category_id, status, id) < ($3, %[1]d, $1) AND (category_id, status) >= ($3, %[1]d)
		ORDER BY category_id DESC, status DESC, id DESC LIMIT $2`)
	// The zeros keep the planner from using the indexes of the filters, because more rows
	// match those than the list of ids.
	listPetsByID = "SELECT " + petColumns + ` FROM pets WHERE id < $1 AND id = ANY ($3)
		AND ($4::smallint IS NULL OR status + 0 = $4) AND ($5::bigint IS NULL OR category_id + 0 = $5) ORDER BY id DESC LIMIT $2`
)

// mergeStatuses merges the lists of all statuses into one. Each is read from its index,
// and only up to the limit.
func mergeStatuses(n int, query string) string {
	parts := make([]string, n)
	for status := range n {
		parts[status] = "(" + fmt.Sprintf(query, status) + ")"
	}
	return strings.Join(parts, " UNION ALL ") + " ORDER BY id DESC LIMIT $2"
}

// petListQuery returns the statement for q and its arguments.
func petListQuery(q db.PetQuery) (query string, args []any) {
	args = []any{upperBound(q.Before), q.Limit}
	switch {
	case q.IDs != nil:
		var status *int16
		if q.Status != "" {
			status = new(statusIndex(petStatuses, q.Status))
		}
		return listPetsByID, append(args, q.IDs, status, q.CategoryID)
	case q.CategoryID != nil && q.Status != "":
		return listPetsByBoth, append(args, *q.CategoryID, statusIndex(petStatuses, q.Status))
	case q.CategoryID != nil:
		return listPetsByCategory, append(args, *q.CategoryID)
	case q.Status != "":
		return listPetsByStatus, append(args, statusIndex(petStatuses, q.Status))
	}
	return listPets, args
}

// Pets implements [db.DB].
func (d *DB) Pets(ctx context.Context, q db.PetQuery) ([]animalstore.Pet, error) {
	query, args := petListQuery(q)
	if query == listPets && q.Limit <= longList {
		return d.shortPage(ctx, q)
	}
	if q.Large == nil {
		return list(ctx, d, "select pets", q.Limit, scanPet, query, args...)
	}
	size, asked := 0, false
	var refused error
	pets, err := list(ctx, d, "select pets", q.Limit, func(row pgx.Row) (animalstore.Pet, error) {
		pet, err := scanPet(row)
		if size += len(pet.Name); size > db.LargeList && !asked {
			asked, refused = true, q.Large()
		}
		if refused != nil {
			return pet, errRefused
		}
		return pet, err
	}, query, args...)
	if refused != nil {
		return nil, refused
	}
	return pets, err
}

// errRefused ends a list without being mistaken for an error of the connection.
var errRefused = errors.New("no turn")

func scanPet(row pgx.Row) (animalstore.Pet, error) {
	var pet animalstore.Pet
	var status int16
	if err := row.Scan(&pet.ID, &pet.CategoryID, &status, &pet.Name); err != nil {
		return animalstore.Pet{}, err
	}
	pet.Status = petStatuses[status]
	return pet, nil
}

// upperBound returns the exclusive upper bound of the ids in a list.
func upperBound(before int64) int64 {
	if before == 0 {
		return math.MaxInt64
	}
	return before
}
