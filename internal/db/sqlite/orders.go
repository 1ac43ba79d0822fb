package sqlite

import (
	"context"
	"errors"

	"animalstore"
	"animalstore/internal/db"

	"zombiezen.com/go/sqlite"
)

// PlaceOrder implements [db.DB].
func (d *DB) PlaceOrder(ctx context.Context, in animalstore.NewOrder, at animalstore.Time, idempotency *db.Idempotency) (animalstore.Order, bool, error) {
	by := db.OriginOf(ctx)
	placed, err := resultOf(ctx, d.writer.do, func(c *sqlite.Conn) (replayable[animalstore.Order], error) {
		return writeOrReplay(c, idempotency, func() (animalstore.Order, error) { return insertOrder(c, by, in, at) })
	})
	return placed.result, placed.replayed, err
}

// insertOrder inserts an order with its event, and changes the status of its pet.
func insertOrder(c *sqlite.Conn, by db.Origin, in animalstore.NewOrder, at animalstore.Time) (order animalstore.Order, err error) {
	pet, err := selectPet(c, in.PetID)
	if err != nil {
		return order, err
	}
	if order, err = db.NewOrder(in, &pet, at); err != nil {
		return order, err
	}
	err = execute(c, "insert order", "INSERT INTO orders (pet_id, status, reference, note, created_at, updated_at) VALUES (?1, ?2, ?3, ?4, ?5, ?5)",
		pet.ID, db.StoredIndex(animalstore.OrderStatuses, order.Status), string(order.Reference), string(order.Note), at.Milli())
	if err != nil {
		return order, err
	}
	order.ID = c.LastInsertRowID()
	if err := insertPetEvent(c, by, animalstore.OrderCreated, order.ID, pet.ID, db.EventData(&order)); err != nil {
		return order, err
	}
	return order, updatePetStatus(c, by, &pet)
}

// updatePetStatus stores the status of a pet and its event.
func updatePetStatus(c *sqlite.Conn, by db.Origin, pet *animalstore.Pet) error {
	err := execute(c, "update status of pet", "UPDATE pets SET status = ? WHERE id = ?", db.StoredIndex(animalstore.PetStatuses, pet.Status), pet.ID)
	if err != nil {
		return err
	}
	return insertPetEvent(c, by, animalstore.PetUpdated, pet.ID, pet.ID, db.EventData(pet))
}

const selectOrder = "SELECT " + db.OrderColumns + " FROM orders WHERE id = ?"

// Order implements [db.DB].
func (d *DB) Order(ctx context.Context, id int64) (animalstore.Order, error) {
	return readOne(ctx, d, "select order", db.ScanOrder, selectOrder, id)
}

// UpdateOrder implements [db.DB].
func (d *DB) UpdateOrder(ctx context.Context, id int64, change func(*animalstore.Order) error) (animalstore.Order, error) {
	by := db.OriginOf(ctx)
	return resultOf(ctx, d.writer.do, func(c *sqlite.Conn) (order animalstore.Order, err error) {
		if order, err = selectOne(c, "select order", db.ScanOrder, selectOrder, id); err != nil {
			return order, err
		}
		before := order
		if err := change(&order); err != nil || order == before {
			return order, err
		}
		err = execute(c, "update order", "UPDATE orders SET status = ?, reference = ?, note = ?, updated_at = ? WHERE id = ?",
			db.StoredIndex(animalstore.OrderStatuses, order.Status), string(order.Reference), string(order.Note), order.UpdatedAt.Milli(), id)
		if err != nil {
			return order, err
		}
		if err := insertPetEvent(c, by, animalstore.OrderUpdated, id, order.PetID, db.EventData(order)); err != nil || order.Status == before.Status {
			return order, err
		}
		pet, err := selectPet(c, order.PetID)
		switch status := order.Status.PetStatus(); {
		case errors.Is(err, db.ErrNotFound): // it was removed
			return order, nil
		case err != nil || pet.Status == status:
			return order, err
		default:
			pet.Status = status
			return order, updatePetStatus(c, by, &pet)
		}
	})
}

// hasOpenOrder reads only the open order: orders_by_pet is sorted by status.
func hasOpenOrder(c *sqlite.Conn, petID int64) (bool, error) {
	found, err := selectInt(c, "select open order", "SELECT 1 FROM orders WHERE pet_id = ? AND status <= 1", petID)
	return found != 0, err
}

// Filtered orders are read from indexes that are sorted by status and id, each status only
// up to the limit. The indexes have no empty references.
var (
	newestOrders = db.OrderLists{
		All: "SELECT " + db.OrderColumns + " FROM orders WHERE id < ?1 ORDER BY id DESC LIMIT +?2",
		ByStatus: "SELECT " + db.OrderColumns + ` FROM orders
			WHERE status = ?3 AND id < ?1 ORDER BY id DESC LIMIT +?2`,
		ByStatuses: "SELECT " + db.OrderColumns + ` FROM (SELECT value AS one FROM json_each(?3)) JOIN orders ON id IN (
			SELECT id FROM orders WHERE status = one AND id < ?1 ORDER BY id DESC LIMIT +?2)
			ORDER BY id DESC LIMIT +?2`,
		OfPet: "SELECT " + db.OrderColumns + ` FROM (SELECT value AS one FROM json_each(?3)) JOIN orders ON id IN (
			SELECT id FROM orders WHERE pet_id = ?4 AND status = one AND id < ?1 ORDER BY id DESC LIMIT +?2)
			ORDER BY id DESC LIMIT +?2`,
		ByReference: "SELECT " + db.OrderColumns + ` FROM (SELECT value AS one FROM json_each(?3)) JOIN orders ON id IN (
			SELECT id FROM orders WHERE reference = ?4 AND reference <> '' AND status = one AND id < ?1
				ORDER BY id DESC LIMIT +?2)
			ORDER BY id DESC LIMIT +?2`,
		OfPetByReference: "SELECT " + db.OrderColumns + ` FROM (SELECT value AS one FROM json_each(?3)) JOIN orders ON id IN (
			SELECT id FROM orders WHERE pet_id = ?4 AND reference = ?5 AND reference <> '' AND status = one AND id < ?1
				ORDER BY id DESC LIMIT +?2)
			ORDER BY id DESC LIMIT +?2`,
	}
	oldestOrders = db.OrderLists{
		All: "SELECT " + db.OrderColumns + " FROM orders WHERE id > ?1 ORDER BY id LIMIT +?2",
		ByStatus: "SELECT " + db.OrderColumns + ` FROM orders
			WHERE status = ?3 AND id > ?1 ORDER BY id LIMIT +?2`,
		ByStatuses: "SELECT " + db.OrderColumns + ` FROM (SELECT value AS one FROM json_each(?3)) JOIN orders ON id IN (
			SELECT id FROM orders WHERE status = one AND id > ?1 ORDER BY id LIMIT +?2)
			ORDER BY id LIMIT +?2`,
		OfPet: "SELECT " + db.OrderColumns + ` FROM (SELECT value AS one FROM json_each(?3)) JOIN orders ON id IN (
			SELECT id FROM orders WHERE pet_id = ?4 AND status = one AND id > ?1 ORDER BY id LIMIT +?2)
			ORDER BY id LIMIT +?2`,
		ByReference: "SELECT " + db.OrderColumns + ` FROM (SELECT value AS one FROM json_each(?3)) JOIN orders ON id IN (
			SELECT id FROM orders WHERE reference = ?4 AND reference <> '' AND status = one AND id > ?1
				ORDER BY id LIMIT +?2)
			ORDER BY id LIMIT +?2`,
		OfPetByReference: "SELECT " + db.OrderColumns + ` FROM (SELECT value AS one FROM json_each(?3)) JOIN orders ON id IN (
			SELECT id FROM orders WHERE pet_id = ?4 AND reference = ?5 AND reference <> '' AND status = one AND id > ?1
				ORDER BY id LIMIT +?2)
			ORDER BY id LIMIT +?2`,
	}
)

// Orders implements [db.DB].
func (d *DB) Orders(ctx context.Context, q animalstore.OrderQuery, page db.Page) ([]animalstore.Order, error) {
	statement, args := db.OrderStatement(&newestOrders, &oldestOrders, q, page)
	return list(ctx, d, "select orders", db.ScanOrder, statement, args...)
}
