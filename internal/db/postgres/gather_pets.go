package postgres

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"animalstore"
	"animalstore/internal/db"

	"github.com/jackc/pgx/v5"
)

const selectPetsByIDs = "SELECT " + petColumns + " FROM pets WHERE id = ANY ($1)"

// foundPet is a pet, unless there is none with the id.
type foundPet struct {
	pet   animalstore.Pet
	found bool
}

// petsByIDs reads the pets with these ids, which are distinct.
func (d *DB) petsByIDs(ctx context.Context, ids []int64) ([]foundPet, error) {
	if len(ids) == 1 {
		pet, err := readOneFor(ctx, d, db.System, "select pet", scanPet, selectPet, ids[0])
		if errors.Is(err, db.ErrNotFound) {
			return make([]foundPet, 1), nil
		}
		return []foundPet{{pet, true}}, err
	}
	place := make(map[int64]int, len(ids))
	for i, id := range ids {
		place[id] = i
	}
	pets := make([]foundPet, len(ids))
	err := d.readTogether(ctx, "select pets", func(rows pgx.Rows) error {
		pet, _, err := readPet(rows)
		if err == nil {
			pets[place[pet.ID]] = foundPet{pet, true}
		}
		return err
	}, selectPetsByIDs, ids)
	return pets, err
}

// readPet reads a row of petColumns, and the place behind them if there is one. It does
// what Scan would, in a tenth of the time.
func readPet(rows pgx.Rows) (pet animalstore.Pet, place int64, err error) {
	values, status := rows.RawValues(), int16(0)
	for i, field := range rows.FieldDescriptions() {
		if i == 3 { // the name is the same in both formats
			continue
		}
		if field.Format != pgx.BinaryFormatCode {
			into := []any{&pet.ID, &pet.CategoryID, &status, &pet.Name, &place}
			err = rows.Scan(into[:len(values)]...)
			pet.Status = petStatuses[status]
			return pet, place, err
		}
	}
	pet.ID, pet.CategoryID = int64(binary.BigEndian.Uint64(values[0])), int64(binary.BigEndian.Uint64(values[1]))
	pet.Status, pet.Name = petStatuses[binary.BigEndian.Uint16(values[2])], string(values[3])
	if len(values) > 4 {
		place = int64(binary.BigEndian.Uint64(values[4]))
	}
	return pet, place, nil
}

// listPetPages reads several pages without filters, each part of the list like listPets.
// It doesn't sort the pages again.
const listPetPages = "SELECT pet.*, page.place FROM unnest($1::bigint[], $2::int[]) WITH ORDINALITY AS page (before, size, place) " +
	"CROSS JOIN LATERAL (SELECT " + petColumns + " FROM pets WHERE id < page.before ORDER BY id DESC LIMIT page.size) AS pet"

// petPage is a page of pets without filters.
type petPage struct {
	before int64
	limit  int32
}

// shortPage reads a page that others may be waiting for too.
func (d *DB) shortPage(ctx context.Context, q db.PetQuery) ([]animalstore.Pet, error) {
	pets, err := d.pages.value(ctx, d, petPage{upperBound(q.Before), int32(q.Limit)})
	if err != nil || q.Large == nil {
		return pets, err
	}
	size := 0
	for i := range pets {
		size += len(pets[i].Name)
	}
	if size > db.LargeList {
		return pets, q.Large()
	}
	return pets, nil
}

// petPages reads several pages.
func (d *DB) petPages(ctx context.Context, pages []petPage) ([][]animalstore.Pet, error) {
	before, limits, lists := make([]int64, len(pages)), make([]int32, len(pages)), make([][]animalstore.Pet, len(pages))
	for i, page := range pages {
		before[i], limits[i] = page.before, page.limit
		lists[i] = make([]animalstore.Pet, 0, page.limit)
	}
	if len(pages) == 1 {
		err := d.readTogether(ctx, "select pets", func(rows pgx.Rows) error {
			pet, _, err := readPet(rows)
			lists[0] = append(lists[0], pet)
			return err
		}, listPets, before[0], limits[0])
		return lists, err
	}
	err := d.readTogether(ctx, "select pets", func(rows pgx.Rows) error {
		pet, place, err := readPet(rows)
		if err == nil {
			lists[place-1] = append(lists[place-1], pet)
		}
		return err
	}, listPetPages, before, limits)
	for _, list := range lists { // it is already, unless the planner found another way
		if newest := func(a, b animalstore.Pet) int { return cmp.Compare(b.ID, a.ID) }; !slices.IsSortedFunc(list, newest) {
			slices.SortFunc(list, newest)
		}
	}
	return lists, err
}

// insertPets does for several pets what insertPet does for one.
const insertPets = `WITH pet AS MATERIALIZED (
		SELECT nextval('pets_id_seq') AS id, given.* FROM unnest($1::text[], $2::bigint[], $3::smallint[], $4::text[], $5::bigint[], $6::bigint[], $7::text[])
			WITH ORDINALITY AS given (name, category_id, status, data, created_at, key_id, request_id, place)),
	inserted AS (INSERT INTO pets (id, name, category_id, status) OVERRIDING SYSTEM VALUE
		SELECT id, name, category_id, status FROM pet),
	category AS (INSERT INTO categories (id, name)
		SELECT DISTINCT category_id, '' FROM pet ORDER BY category_id ON CONFLICT DO NOTHING RETURNING id),
	event AS (` + addEvents + `
		SELECT 0, id, created_at, key_id, request_id, '{"id":' || id || data FROM pet UNION ALL
		(SELECT DISTINCT ON (category.id) 5, category.id, created_at, key_id, request_id, '{"id":' || category.id || ',"name":""}'
			FROM category JOIN pet ON category_id = category.id ORDER BY category.id, place))
	SELECT id FROM pet ORDER BY place`

// newPet is a pet to create.
type newPet struct {
	pet animalstore.Pet // without an id
	by  db.Actor
}

// petID is the id of a new pet, or why it has none.
type petID struct {
	id  int64
	err error
}

// createPets creates pets, all or none unless PostgreSQL refuses the statement: then each
// has a statement of its own. A nil isn't wanted any more.
func (d *DB) createPets(ctx context.Context, pets []*newPet) ([]petID, error) {
	ctx = db.WithCaller(ctx, db.System) // it takes none of their turns
	ids := make([]petID, len(pets))
	if wanted := slices.DeleteFunc(slices.Clone(pets), func(p *newPet) bool { return p == nil }); len(wanted) > 1 {
		created, err := d.insertPets(ctx, wanted)
		if err == nil {
			for i, p := range pets {
				if p != nil {
					ids[i].id, created = created[0], created[1:]
				}
			}
			return ids, nil
		}
		if errors.Is(err, db.ErrUnavailable) || errors.Is(err, db.ErrOutcomeUnknown) || errors.Is(err, db.ErrFull) {
			return nil, err // so would be each alone, after the others
		}
	}
	for i, p := range pets {
		if p != nil {
			ids[i].id, ids[i].err = d.insertPet(ctx, p)
		}
	}
	return ids, nil
}

func (d *DB) insertPet(ctx context.Context, p *newPet) (id int64, err error) {
	err = d.writeStatement(ctx, "insert pet", func(ctx context.Context, c *pgx.Conn) error {
		return c.QueryRow(ctx, insertPet, insertPetArgs(p.by, &p.pet)...).Scan(&id)
	})
	return id, err
}

func (d *DB) insertPets(ctx context.Context, pets []*newPet) (ids []int64, err error) {
	n, now := len(pets), time.Now().UnixMilli()
	names, categories, statuses, data := make([]string, n), make([]int64, n), make([]int16, n), make([]string, n)
	times, keys, requests := make([]int64, n), make([]int64, n), make([]string, n)
	for i, p := range pets {
		names[i], categories[i], statuses[i] = p.pet.Name, p.pet.CategoryID, statusIndex(petStatuses, p.pet.Status)
		data[i] = string(p.pet.AppendJSONAfterID(make([]byte, 0, 128)))
		times[i], keys[i], requests[i] = now, p.by.KeyID, p.by.RequestID
	}
	err = d.writeStatement(ctx, "insert pets", func(ctx context.Context, c *pgx.Conn) error {
		rows, err := c.Query(ctx, insertPets, names, categories, statuses, data, times, keys, requests)
		if err != nil {
			return err
		}
		ids, err = pgx.AppendRows(ids[:0], rows, pgx.RowTo[int64])
		return err
	})
	return ids, err
}
