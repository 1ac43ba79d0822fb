package sqlite

import (
	"context"

	"animalstore"
	"animalstore/internal/db"

	"zombiezen.com/go/sqlite"
)

const selectPetByID = "SELECT " + db.PetColumns + " FROM pets WHERE id = ?"

// CreatePet implements [db.DB].
func (d *DB) CreatePet(ctx context.Context, p animalstore.NewPet, idempotency *db.Idempotency) (animalstore.Pet, bool, error) {
	by := db.OriginOf(ctx)
	created, err := resultOf(ctx, d.writer.doWithoutSavepoint, func(c *sqlite.Conn) (replayable[animalstore.Pet], error) {
		return writeOrReplay(c, idempotency, func() (animalstore.Pet, error) { return insertPet(c, by, p) })
	})
	return created.result, created.replayed, err
}

// CreatePets implements [db.DB].
func (d *DB) CreatePets(ctx context.Context, pets []animalstore.NewPet, idempotency *db.Idempotency) ([]animalstore.Pet, bool, error) {
	by := db.OriginOf(ctx)
	created, err := resultOf(ctx, d.writer.doWithoutSavepoint, func(c *sqlite.Conn) (replayable[[]animalstore.Pet], error) {
		return writeOrReplay(c, idempotency, func() ([]animalstore.Pet, error) {
			all := make([]animalstore.Pet, len(pets))
			for i, p := range pets {
				var err error
				if all[i], err = insertPet(c, by, p); err != nil {
					return nil, err
				}
			}
			return all, nil
		})
	})
	return created.result, created.replayed, err
}

// insertPet inserts a pet with its event, and its category unless it exists.
func insertPet(c *sqlite.Conn, by db.Origin, p animalstore.NewPet) (animalstore.Pet, error) {
	pet := p.Pet()
	err := execute(c, "insert pet", "INSERT INTO pets (name, category_id, status) VALUES (?, ?, ?)",
		pet.Name, pet.CategoryID, db.StoredIndex(animalstore.PetStatuses, pet.Status))
	if err != nil {
		return pet, err
	}
	pet.ID = c.LastInsertRowID()
	if err := insertNameEntries(c, &pet); err != nil {
		return pet, err
	}
	if err := insertPetEvent(c, by, animalstore.PetCreated, pet.ID, pet.ID, db.EventData(&pet)); err != nil {
		return pet, err
	}
	return pet, ensureCategory(c, by, pet.CategoryID)
}

// Pet implements [db.DB].
func (d *DB) Pet(ctx context.Context, id int64) (animalstore.Pet, error) {
	return resultOf(ctx, d.read, func(c *sqlite.Conn) (animalstore.Pet, error) {
		return selectPet(c, id)
	})
}

func selectPet(c *sqlite.Conn, id int64) (animalstore.Pet, error) {
	return selectOne(c, "select pet", scanPet, selectPetByID, id)
}

// UpdatePet implements [db.DB].
func (d *DB) UpdatePet(ctx context.Context, id int64, change func(*animalstore.Pet, bool) error) (animalstore.Pet, error) {
	by := db.OriginOf(ctx)
	return resultOf(ctx, d.writer.do, func(c *sqlite.Conn) (pet animalstore.Pet, err error) {
		if pet, err = selectPet(c, id); err != nil {
			return pet, err
		}
		before := pet
		ordered, err := hasOpenOrder(c, id)
		if err != nil {
			return pet, err
		}
		if err := change(&pet, ordered); err != nil || pet == before {
			return pet, err
		}
		err = execute(c, "update pet", "UPDATE pets SET name = ?, category_id = ?, status = ? WHERE id = ?",
			pet.Name, pet.CategoryID, db.StoredIndex(animalstore.PetStatuses, pet.Status), id)
		if err != nil {
			return pet, err
		}
		if pet.Name != before.Name {
			if err := deleteNameEntries(c, &before); err != nil {
				return pet, err
			}
			if err := insertNameEntries(c, &pet); err != nil {
				return pet, err
			}
		}
		if err := insertPetEvent(c, by, animalstore.PetUpdated, id, id, db.EventData(&pet)); err != nil {
			return pet, err
		}
		return pet, ensureCategory(c, by, pet.CategoryID)
	})
}

// DeletePet implements [db.DB].
func (d *DB) DeletePet(ctx context.Context, id int64, check func(*animalstore.Pet, bool) error) error {
	by := db.OriginOf(ctx)
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
		if err := deletePhotosOf(c, by, id); err != nil {
			return err
		}
		if err := deleteNameEntries(c, &pet); err != nil {
			return err
		}
		if err := execute(c, "delete pet", "DELETE FROM pets WHERE id = ?", id); err != nil {
			return err
		}
		return insertPetEvent(c, by, animalstore.PetDeleted, id, id, db.EventData(&pet))
	})
}

// The plus keeps SQLite from compiling a statement again for each value of the limit, which
// takes longer than reading a page. A category is read by each status, because its index is
// sorted by them.
var listPets = db.PetLists{
	All:      "SELECT " + db.PetColumns + " FROM pets WHERE id < ?1 ORDER BY id DESC LIMIT +?2",
	ByStatus: "SELECT " + db.PetColumns + " FROM pets WHERE id < ?1 AND status = ?3 ORDER BY id DESC LIMIT +?2",
	ByBoth: "SELECT " + db.PetColumns + ` FROM pets
		WHERE id < ?1 AND category_id = ?3 AND status = ?4 ORDER BY id DESC LIMIT +?2`,
	ByCategory: `
		SELECT * FROM (SELECT ` + db.PetColumns + ` FROM pets
			WHERE id < ?1 AND category_id = ?3 AND status = 0 ORDER BY id DESC LIMIT +?2) UNION ALL
		SELECT * FROM (SELECT ` + db.PetColumns + ` FROM pets
			WHERE id < ?1 AND category_id = ?3 AND status = 1 ORDER BY id DESC LIMIT +?2) UNION ALL
		SELECT * FROM (SELECT ` + db.PetColumns + ` FROM pets
			WHERE id < ?1 AND category_id = ?3 AND status = 2 ORDER BY id DESC LIMIT +?2)
		ORDER BY id DESC LIMIT +?2`,
	ByID: "SELECT " + db.PetColumns + ` FROM pets WHERE id < ?1 AND id IN (SELECT value FROM json_each(?3))
		AND (?4 IS NULL OR status = ?4) AND (?5 IS NULL OR category_id = ?5) ORDER BY id DESC LIMIT +?2`,
}

// listPet is the list for one id, which most requests for ids have. Reading it from a list
// of ids costs as much as a page of twenty.
const listPet = "SELECT " + db.PetColumns + ` FROM pets WHERE id < ?1 AND id = ?3
	AND (?4 IS NULL OR status = ?4) AND (?5 IS NULL OR category_id = ?5) LIMIT +?2`

// Pets implements [db.DB].
func (d *DB) Pets(ctx context.Context, q animalstore.PetQuery, page db.Page) ([]animalstore.Pet, error) {
	statement, args := listPets.Statement(q, page)
	if len(q.IDs) == 1 {
		statement, args[2] = listPet, q.IDs[0]
	}
	return list(ctx, d, "select pets", scanPet, statement, args...)
}

// scanPet is [db.ScanPet] without its allocations.
func scanPet(r db.Row) (animalstore.Pet, error) {
	stmt := r.(row)
	pet := animalstore.Pet{
		ID:         stmt.ColumnInt64(0),
		CategoryID: stmt.ColumnInt64(1),
		Status:     db.FromStored(animalstore.PetStatuses, stmt.ColumnInt64(2)),
		Name:       stmt.ColumnText(3),
	}
	return pet, db.CheckPet(&pet)
}
