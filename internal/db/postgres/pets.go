package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"animalstore"
	"animalstore/internal/db"

	"github.com/jackc/pgx/v5"
)

// insertPet adds a pet, the entries of its name, its category if that doesn't exist, and
// the events of both, of the types 0 and 5, in one statement, so that all are stored or none.
// $4 is the pet's JSON after the id.
const insertPet = `WITH pet AS (INSERT INTO pets (name, category_id, status) VALUES ($1, $2, $3) RETURNING id),
	entry AS (` + insertEntries + ` SELECT entry, pet.id, shared FROM pet CROSS JOIN unnest($8::text[], $9::bigint[]) AS given (entry, shared)),
	category AS (INSERT INTO categories (id, name) VALUES ($2, '') ON CONFLICT DO NOTHING RETURNING id),
	event AS (` + insertEvents + `
		SELECT 0, id, id, $5::bigint, $6::bigint, $7, '{"id":' || id || $4 FROM pet UNION ALL
		SELECT 5, id, 0, $5, $6, $7, '{"id":' || id || ',"name":""}' FROM category)
	SELECT id FROM pet`

// insertPets does the same for several pets. For one pet it would be a fifth slower.
const insertPets = `WITH pet AS MATERIALIZED (
		SELECT nextval('pets_id_seq') AS id, given.* FROM unnest($1::text[], $2::bigint[], $3::smallint[], $4::text[], $5::bigint[], $6::bigint[], $7::text[])
			WITH ORDINALITY AS given (name, category_id, status, data, created_at, key_id, request_id, place)),
	inserted AS (INSERT INTO pets (id, name, category_id, status) OVERRIDING SYSTEM VALUE
		SELECT id, name, category_id, status FROM pet),
	entry AS (` + insertEntries + ` SELECT entry, id, shared FROM unnest($8::text[], $9::bigint[], $10::bigint[]) AS given (entry, shared, place) JOIN pet USING (place)),
	category AS (INSERT INTO categories (id, name)
		SELECT DISTINCT category_id, '' FROM pet ORDER BY category_id ON CONFLICT DO NOTHING RETURNING id),
	event AS (` + insertEvents + `
		SELECT 0, id, id, created_at, key_id, request_id, '{"id":' || id || data FROM pet UNION ALL
		(SELECT DISTINCT ON (category.id) 5, category.id, 0, created_at, key_id, request_id, '{"id":' || category.id || ',"name":""}'
			FROM category JOIN pet ON category_id = category.id ORDER BY category.id, place))
	SELECT id FROM pet ORDER BY place`

// newPet is a pet to create.
type newPet struct {
	pet animalstore.Pet // without an id
	by  db.Origin
}

// insertPetArgs are the arguments of insertPet.
func insertPetArgs(p newPet) []any {
	entries, shared := nameEntries(p.pet.Name)
	return []any{p.pet.Name, p.pet.CategoryID, db.StoredIndex(animalstore.PetStatuses, p.pet.Status),
		string(db.AppendPetAfterID(make([]byte, 0, 128), &p.pet)), time.Now().UnixMilli(), p.by.KeyID, p.by.RequestID, entries, shared}
}

// insertPetsArgs are the arguments of insertPets.
func insertPetsArgs(pets []newPet) []any {
	n, now := len(pets), time.Now().UnixMilli()
	names, categories, statuses, data := make([]string, n), make([]int64, n), make([]int64, n), make([]string, n)
	times, keys, requests := make([]int64, n), make([]int64, n), make([]string, n)
	entries, shared, places := make([]string, 0, 2*n), make([]int64, 0, 2*n), make([]int64, 0, 2*n) // most names have two words
	for i, p := range pets {
		names[i], categories[i], statuses[i] = p.pet.Name, p.pet.CategoryID, db.StoredIndex(animalstore.PetStatuses, p.pet.Status)
		data[i] = string(db.AppendPetAfterID(make([]byte, 0, 128), &p.pet))
		times[i], keys[i], requests[i] = now, p.by.KeyID, p.by.RequestID
		for _, e := range db.NameEntries(p.pet.Name) {
			entries, shared, places = append(entries, e.Text), append(shared, int64(e.Shared)), append(places, int64(i+1))
		}
	}
	return []any{names, categories, statuses, data, times, keys, requests, entries, shared, places}
}

// CreatePet implements [db.DB].
func (d *DB) CreatePet(ctx context.Context, p animalstore.NewPet, idempotency *db.Idempotency) (pet animalstore.Pet, replayed bool, err error) {
	by := db.OriginOf(ctx)
	if idempotency == nil {
		pet = p.Pet()
		created, err := d.creates.do(ctx, newPet{pet, by})
		switch {
		case errors.Is(err, errBatchBegun):
			err = fmt.Errorf("insert pet: %w: %w", db.ErrOutcomeUnknown, err)
		case errors.Is(err, errBatchLate):
			err = fmt.Errorf("insert pet: %w: %w", db.ErrUnavailable, err)
		}
		pet.ID = created.id
		return pet, false, cmp.Or(err, created.err)
	}
	err = d.write(ctx, func(ctx context.Context, tx pgx.Tx) (err error) {
		replayed, err = writeOrReplay(ctx, tx, idempotency, &pet, func() (err error) {
			pet = p.Pet()
			pet.ID, err = selectOne(ctx, tx, "insert pet", db.ScanValue[int64], insertPet, insertPetArgs(newPet{pet, by})...)
			return err
		})
		return err
	})
	return pet, replayed, err
}

// CreatePets implements [db.DB].
func (d *DB) CreatePets(ctx context.Context, pets []animalstore.NewPet, idempotency *db.Idempotency) (created []animalstore.Pet, replayed bool, err error) {
	by := db.OriginOf(ctx)
	given := make([]newPet, len(pets))
	for i, p := range pets {
		given[i] = newPet{p.Pet(), by}
	}
	err = d.write(ctx, func(ctx context.Context, tx pgx.Tx) (err error) {
		replayed, err = writeOrReplay(ctx, tx, idempotency, &created, func() error {
			ids, err := selectAll(ctx, tx, "insert pets", db.ScanValue[int64], insertPets, insertPetsArgs(given)...)
			if err != nil {
				return err
			}
			created = make([]animalstore.Pet, len(given))
			for i, id := range ids {
				created[i] = given[i].pet
				created[i].ID = id
			}
			return nil
		})
		return err
	})
	return created, replayed, err
}

// createdPet is the id of a new pet, or why it has none.
type createdPet struct {
	id  int64
	err error
}

// createPets creates pets in one statement. If PostgreSQL refuses it, each pet gets its
// own statement, so that only the bad ones fail.
func (d *DB) createPets(ctx context.Context, pets []newPet) ([]createdPet, error) {
	created := make([]createdPet, len(pets))
	ids, err := d.insertPets(ctx, pets)
	switch {
	case err == nil:
		for i, id := range ids {
			created[i].id = id
		}
		return created, nil
	case len(pets) == 1, errors.Is(err, db.ErrUnavailable), errors.Is(err, db.ErrOutcomeUnknown), errors.Is(err, db.ErrFull):
		return nil, err // each alone would fail like this too
	}
	for i := range pets {
		ids, err := d.insertPets(ctx, pets[i:i+1])
		if created[i].err = err; err == nil {
			created[i].id = ids[0]
		}
	}
	return created, nil
}

func (d *DB) insertPets(ctx context.Context, pets []newPet) (ids []int64, err error) {
	err = d.writeStatement(ctx, "insert pets", func(ctx context.Context, c *pgx.Conn) error {
		query, args := insertPets, insertPetsArgs(pets)
		if len(pets) == 1 {
			query, args = insertPet, insertPetArgs(pets[0])
		}
		rows, err := c.Query(ctx, query, args...)
		if err != nil {
			return err
		}
		ids, err = pgx.CollectRows(rows, pgx.RowTo[int64])
		return err
	})
	return ids, err
}

const selectPet = "SELECT " + db.PetColumns + " FROM pets WHERE id = $1"

// Pet implements [db.DB].
func (d *DB) Pet(ctx context.Context, id int64) (animalstore.Pet, error) {
	return readOne(ctx, d, "select pet", db.ScanPet, selectPet, id)
}

// lockPet locks a pet until the transaction ends and returns it, and whether it has an
// open order. That takes a second statement: one that waits for a lock
// sees the current state of the locked row, but everything else as of its start.
func lockPet(ctx context.Context, tx pgx.Tx, id int64) (pet animalstore.Pet, ordered bool, err error) {
	if pet, err = lockOne(ctx, tx, "lock pet", db.ScanPet, selectPet, id); err != nil {
		return pet, false, err
	}
	err = tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM orders WHERE pet_id = $1 AND status <= 1)", id).Scan(&ordered)
	return pet, ordered, failed("select open order", err)
}

// UpdatePet implements [db.DB].
func (d *DB) UpdatePet(ctx context.Context, id int64, change func(*animalstore.Pet, bool) error) (animalstore.Pet, error) {
	var pet animalstore.Pet
	err := d.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		before, ordered, err := lockPet(ctx, tx, id)
		if err != nil {
			return err
		}
		pet = before
		if err := change(&pet, ordered); err != nil || pet == before {
			return err
		}
		var batch pgx.Batch
		batch.Queue("UPDATE pets SET name = $2, category_id = $3, status = $4 WHERE id = $1",
			id, pet.Name, pet.CategoryID, db.StoredIndex(animalstore.PetStatuses, pet.Status))
		if pet.Name != before.Name {
			deleteNameEntries(&batch, &before)
			entries, shared := nameEntries(pet.Name)
			batch.Queue(insertEntries+"SELECT entry, $1, shared FROM unnest($2::text[], $3::bigint[]) AS given (entry, shared)", id, entries, shared)
		}
		queuePetEvent(ctx, &batch, animalstore.PetUpdated, id, id, db.EventData(&pet))
		if err := send(ctx, tx, "update pet", &batch); err != nil || pet.CategoryID == before.CategoryID {
			return err
		}
		_, err = insertCategory(ctx, tx, animalstore.Category{ID: pet.CategoryID})
		return err
	})
	return pet, err
}

// DeletePet implements [db.DB].
func (d *DB) DeletePet(ctx context.Context, id int64, check func(*animalstore.Pet, bool) error) error {
	return d.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		pet, ordered, err := lockPet(ctx, tx, id)
		if err != nil {
			return err
		}
		if err := check(&pet, ordered); err != nil {
			return err
		}
		if err := deletePhotosOf(ctx, tx, id); err != nil {
			return err
		}
		var batch pgx.Batch
		deleteNameEntries(&batch, &pet)
		batch.Queue("DELETE FROM pets WHERE id = $1", id)
		queuePetEvent(ctx, &batch, animalstore.PetDeleted, id, id, db.EventData(&pet))
		return send(ctx, tx, "delete pet", &batch)
	})
}

// A list with a filter compares and orders by all columns of its index, which only that
// index can serve. With the filter alone, the planner would scan the primary key if it thinks
// that the status is common, and the matching pets may all be old.
var listPets = db.PetLists{
	All: "SELECT " + db.PetColumns + " FROM pets WHERE id < $1 ORDER BY id DESC LIMIT $2",
	ByStatus: "SELECT " + db.PetColumns + ` FROM pets
		WHERE (status, id) < ($3, $1) AND status >= $3 ORDER BY status DESC, id DESC LIMIT $2`,
	ByBoth: "SELECT " + db.PetColumns + ` FROM pets
		WHERE (category_id, status, id) < ($3, $4, $1) AND (category_id, status) >= ($3, $4)
		ORDER BY category_id DESC, status DESC, id DESC LIMIT $2`,
	ByCategory: "SELECT pet.* FROM (VALUES (0), (1), (2)) AS one (status) " +
		"CROSS JOIN LATERAL (SELECT " + db.PetColumns + ` FROM pets
		WHERE (category_id, status, id) < ($3, one.status, $1) AND (category_id, status) >= ($3, one.status)
		ORDER BY category_id DESC, status DESC, id DESC LIMIT $2) AS pet ORDER BY id DESC LIMIT $2`,
	// The zeros keep the planner from using the indexes of the filters, because more rows
	// match those than the list of ids.
	ByID: "SELECT " + db.PetColumns + ` FROM pets WHERE id < $1 AND id = ANY ($3)
		AND ($4::smallint IS NULL OR status + 0 = $4) AND ($5::bigint IS NULL OR category_id + 0 = $5) ORDER BY id DESC LIMIT $2`,
}

// Pets implements [db.DB].
func (d *DB) Pets(ctx context.Context, q animalstore.PetQuery, page db.Page) ([]animalstore.Pet, error) {
	statement, args := listPets.Statement(q, page)
	if statement == listPets.All && page.Limit <= longPage {
		pets, err := d.pages.do(ctx, petPage{db.UpperBound(page.After), page.Limit})
		if errors.Is(err, errBatchLate) {
			err = fmt.Errorf("select pets: %w: %w", db.ErrUnavailable, err)
		}
		return pets, err
	}
	return listPage(ctx, d, "select pets", page.Limit, db.ScanPet, statement, args...)
}

// listPetPages reads several pages without filters, each like listPets.All.
const listPetPages = "SELECT page.place, pet.* FROM unnest($1::bigint[], $2::int[]) WITH ORDINALITY AS page (before, size, place) " +
	"CROSS JOIN LATERAL (SELECT " + db.PetColumns + " FROM pets WHERE id < page.before ORDER BY id DESC LIMIT page.size) AS pet"

// petPage is a page of pets without filters.
type petPage struct {
	before int64
	limit  int
}

// petPages reads several pages, equal ones once.
func (d *DB) petPages(ctx context.Context, pages []petPage) ([][]animalstore.Pet, error) {
	places := map[petPage]int{}
	var before []int64
	var limits []int
	for _, page := range pages {
		if _, found := places[page]; !found {
			places[page] = len(before)
			before, limits = append(before, page.before), append(limits, page.limit)
		}
	}
	read := make([][]animalstore.Pet, len(before))
	err := d.read(ctx, func(ctx context.Context, c *pgx.Conn) error {
		rows, err := c.Query(ctx, listPetPages, before, limits)
		if err != nil {
			return failed("select pets", err)
		}
		var place, status int64
		var pet animalstore.Pet
		_, err = pgx.ForEachRow(rows, []any{&place, &pet.ID, &pet.CategoryID, &status, &pet.Name}, func() error {
			pet.Status = db.FromStored(animalstore.PetStatuses, status)
			read[place-1] = append(read[place-1], pet)
			return nil
		})
		return failed("select pets", err)
	})
	if err != nil {
		return nil, err
	}
	for _, pets := range read { // they are sorted, unless the planner found another way
		slices.SortFunc(pets, func(a, b animalstore.Pet) int { return cmp.Compare(b.ID, a.ID) })
	}
	results := make([][]animalstore.Pet, len(pages))
	for i, page := range pages {
		results[i] = append([]animalstore.Pet{}, read[places[page]]...) // its caller's alone
	}
	return results, nil
}
