package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"animalstore"
	"animalstore/internal/db"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// A status is stored as its index in the domain's list.
var (
	petStatuses   = animalstore.PetStatuses
	orderStatuses = animalstore.OrderStatuses
)

// statusIndex panics if s is unknown: callers have validated it.
func statusIndex[S comparable](all []S, s S) int64 {
	for i, known := range all {
		if known == s {
			return int64(i)
		}
	}
	panic(fmt.Sprintf("status %v passed validation but is unknown", s))
}

const petColumns = "id, category_id, status, name"

// CreatePet implements [db.DB].
func (d *DB) CreatePet(ctx context.Context, p animalstore.NewPet, retry *db.Idempotency) (pet animalstore.Pet, replayed bool, err error) {
	if p.Status == "" {
		p.Status = animalstore.PetAvailable
	}
	by := db.ActorOf(ctx)
	err = d.writer.doSure(ctx, func(c *sqlite.Conn) (err error) {
		replayed, err = writeOrReplay(c, retry, &pet, func() error {
			pet = animalstore.Pet{Name: p.Name, CategoryID: p.CategoryID, Status: p.Status}
			stmt, err := c.Prepare("INSERT INTO pets (name, category_id, status) VALUES (?, ?, ?)")
			if err != nil {
				return fmt.Errorf("insert pet: %w", err)
			}
			stmt.BindText(1, p.Name)
			stmt.BindInt64(2, p.CategoryID)
			stmt.BindInt64(3, statusIndex(petStatuses, p.Status))
			if _, err := stmt.Step(); err != nil {
				return fmt.Errorf("insert pet: %w", err)
			}
			pet.ID = c.LastInsertRowID()
			if err := insertEvent(c, by, animalstore.PetCreated, pet.ID, db.EventData(&pet)); err != nil {
				return err
			}
			return d.ensureCategory(c, by, p.CategoryID)
		})
		return err
	})
	return pet, replayed, err
}

// Pet implements [db.DB].
func (d *DB) Pet(ctx context.Context, id int64) (animalstore.Pet, error) {
	if d.pets != nil {
		if pet, ok := d.pets.get(id); ok {
			return pet, nil
		}
	}
	generation := d.writer.generation.Load()
	var pet animalstore.Pet
	err := d.readOwn(ctx, func(c *sqlite.Conn) (err error) {
		pet, err = selectPet(c, id)
		return err
	})
	if err == nil && d.pets != nil {
		d.pets.put(pet, generation)
	}
	return pet, err
}

func selectPet(c *sqlite.Conn, id int64) (animalstore.Pet, error) {
	pet, err := selectByID(c, "pet", "SELECT "+petColumns+" FROM pets WHERE id = ?", id, scanPet)
	if err != nil {
		return pet, err
	}
	return pet, checkPet(&pet)
}

// selectByID returns the row with that id, or [db.ErrNotFound]. It binds and steps
// the statement directly, because sqlitex takes longer for that than SQLite does
// to find the row.
func selectByID[Row any](c *sqlite.Conn, what, query string, id int64, scan func(*sqlite.Stmt) Row) (row Row, err error) {
	stmt, err := c.Prepare(query)
	if err != nil {
		return row, fmt.Errorf("select %s: %w", what, err)
	}
	defer stmt.Reset()
	stmt.BindInt64(1, id)
	found, err := stmt.Step()
	if err != nil {
		return row, fmt.Errorf("select %s: %w", what, err)
	}
	if !found {
		return row, db.ErrNotFound
	}
	return scan(stmt), nil
}

// UpdatePet implements [db.DB].
func (d *DB) UpdatePet(ctx context.Context, id int64, change func(*animalstore.Pet, bool) error) (animalstore.Pet, error) {
	var pet animalstore.Pet
	by := db.ActorOf(ctx)
	err := d.writer.do(ctx, func(c *sqlite.Conn) (err error) {
		if pet, err = selectPet(c, id); err != nil {
			return err
		}
		before := pet
		ordered, err := hasOpenOrder(c, id)
		if err != nil {
			return err
		}
		if err := change(&pet, ordered); err != nil || pet == before {
			return err
		}
		d.markChanged(id)
		err = sqlitex.Execute(c, "UPDATE pets SET name = ?, category_id = ?, status = ? WHERE id = ?",
			&sqlitex.ExecOptions{Args: []any{pet.Name, pet.CategoryID, statusIndex(petStatuses, pet.Status), id}})
		if err != nil {
			return fmt.Errorf("update pet: %w", err)
		}
		if err := insertEvent(c, by, animalstore.PetUpdated, id, db.EventData(&pet)); err != nil {
			return err
		}
		return d.ensureCategory(c, by, pet.CategoryID)
	})
	return pet, err
}

// DeletePet implements [db.DB].
func (d *DB) DeletePet(ctx context.Context, id int64, check func(*animalstore.Pet, bool) error) error {
	by := db.ActorOf(ctx)
	return d.writer.do(ctx, func(c *sqlite.Conn) error {
		pet, err := selectPet(c, id)
		if err != nil {
			return err
		}
		ordered, err := hasOpenOrder(c, id)
		if err != nil {
			return err
		}
		if err := check(&pet, ordered); err != nil {
			return err
		}
		d.markChanged(id)
		if err := sqlitex.Execute(c, "DELETE FROM pets WHERE id = ?", &sqlitex.ExecOptions{Args: []any{id}}); err != nil {
			return fmt.Errorf("delete pet: %w", err)
		}
		return insertEvent(c, by, animalstore.PetDeleted, id, db.EventData(&pet))
	})
}

// Parameters of a list: ?1 is the upper bound of ids, ?2 the limit, ?3 and ?4 the
// values of the filters. The plus keeps SQLite from compiling the statement again
// for each value of the limit, which takes longer than reading a page.
var (
	listPets           = "SELECT " + petColumns + " FROM pets WHERE id < ?1 ORDER BY id DESC LIMIT +?2"
	listPetsByStatus   = "SELECT " + petColumns + " FROM pets WHERE id < ?1 AND status = ?3 ORDER BY id DESC LIMIT +?2"
	listPetsByBoth     = "SELECT " + petColumns + " FROM pets WHERE id < ?1 AND status = ?3 AND category_id = ?4 ORDER BY id DESC LIMIT +?2"
	listPetsByCategory = mergeStatuses(len(petStatuses), "SELECT "+petColumns+" FROM pets WHERE id < ?1 AND category_id = ?4 AND status = %d ORDER BY id DESC LIMIT +?2")
	listPetsByID       = "SELECT " + petColumns + ` FROM pets WHERE id < ?1 AND id IN (SELECT value FROM json_each(?5))
		AND (?3 IS NULL OR status = ?3) AND (?4 IS NULL OR category_id = ?4) ORDER BY id DESC LIMIT +?2`
)

// mergeStatuses merges the lists of all statuses into one. Each is read from an index
// that starts with the status, and only up to the limit.
func mergeStatuses(n int, query string) string {
	parts := make([]string, n)
	for status := range n {
		parts[status] = "SELECT * FROM (" + fmt.Sprintf(query, status) + ")"
	}
	return strings.Join(parts, " UNION ALL ") + " ORDER BY id DESC LIMIT +?2"
}

func petListQuery(q db.PetQuery) string {
	switch {
	case q.IDs != nil:
		return listPetsByID
	case q.CategoryID != nil && q.Status != "":
		return listPetsByBoth
	case q.CategoryID != nil:
		return listPetsByCategory
	case q.Status != "":
		return listPetsByStatus
	}
	return listPets
}

// Pets implements [db.DB].
func (d *DB) Pets(ctx context.Context, q db.PetQuery) ([]animalstore.Pet, error) {
	query := petListQuery(q)
	var pets []animalstore.Pet
	err := d.readOwn(ctx, func(c *sqlite.Conn) error {
		if q.Room != nil { // not before, because many may wait for their turn
			pets = q.Room()[:0]
		}
		if cap(pets) < q.Limit {
			pets = make([]animalstore.Pet, 0, q.Limit)
		}
		stmt, err := c.Prepare(query)
		if err != nil {
			return fmt.Errorf("select pets: %w", err)
		}
		defer stmt.Reset()
		stmt.BindInt64(1, upperBound(q.Before))
		stmt.BindInt64(2, int64(q.Limit))
		if q.Status != "" {
			stmt.BindInt64(3, statusIndex(petStatuses, q.Status))
		}
		if q.CategoryID != nil {
			stmt.BindInt64(4, *q.CategoryID)
		}
		if q.IDs != nil {
			ids, err := json.Marshal(q.IDs)
			if err != nil {
				return err
			}
			stmt.BindText(5, string(ids))
		}
		pets, err = scanPets(stmt, pets, q)
		return err
	})
	return pets, err
}

// nameRoom is room for the names of a page while it is read.
type nameRoom struct {
	names []byte
	ends  []int // where each name ends
}

var nameRooms = sync.Pool{New: func() any { return new(nameRoom) }}

// free lets another page use the room, unless it is so large that few need it.
func (room *nameRoom) free() {
	if cap(room.names) <= db.LargeList {
		nameRooms.Put(room)
	}
}

// scanPets appends all rows to pets, which has room for them. The names share one
// allocation, because the pets of a page are used and freed together. It calls q.Large,
// if not nil, before it reads much.
func scanPets(stmt *sqlite.Stmt, pets []animalstore.Pet, q db.PetQuery) ([]animalstore.Pet, error) {
	room := nameRooms.Get().(*nameRoom)
	defer room.free()
	names, ends, large := room.names[:0], room.ends[:0], q.Large
	for {
		more, err := stmt.Step()
		if err != nil {
			return pets, fmt.Errorf("select pets: %w", err)
		}
		if !more {
			break
		}
		start, size := len(names), stmt.ColumnLen(3)
		if start+size > db.LargeList && large != nil {
			if err := large(); err != nil {
				return pets, err
			}
			large = nil
			// Room for all of a page, if the others are as long, instead of room twice
			// as large time and again.
			names = slices.Grow(names, (start+size)/(len(pets)+1)*max(1, min(q.Limit, 128)-len(pets)))
		}
		names = slices.Grow(names, size)[:start+size]
		stmt.ColumnBytes(3, names[start:])
		ends = append(ends, len(names))
		pets = append(pets, animalstore.Pet{
			ID:         stmt.ColumnInt64(0),
			CategoryID: stmt.ColumnInt64(1),
			Status:     statusAt(petStatuses, stmt.ColumnInt64(2)),
		})
	}
	room.names, room.ends = names, ends
	text, start := string(names), 0
	for i, end := range ends {
		pets[i].Name = text[start:end]
		start = end
	}
	return pets, checkPets(pets)
}

func scanPet(stmt *sqlite.Stmt) animalstore.Pet {
	return animalstore.Pet{
		ID:         stmt.ColumnInt64(0),
		CategoryID: stmt.ColumnInt64(1),
		Status:     statusAt(petStatuses, stmt.ColumnInt64(2)),
		Name:       stmt.ColumnText(3),
	}
}

// upperBound returns the exclusive upper bound of the ids in a list.
func upperBound(before int64) int64 {
	if before == 0 {
		return math.MaxInt64
	}
	return before
}
