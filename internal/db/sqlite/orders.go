package sqlite

import (
	"context"
	"errors"
	"fmt"

	"animalstore"
	"animalstore/internal/db"

	"zombiezen.com/go/sqlite"
)

const orderColumns = "id, pet_id, status, created_at, updated_at"

// PlaceOrder implements [db.DB].
func (d *DB) PlaceOrder(ctx context.Context, petID int64, at animalstore.Time, idempotency *db.Idempotency) (animalstore.Order, bool, error) {
	by := db.OriginOf(ctx)
	placed, err := resultOf(ctx, d.writer.do, func(c *sqlite.Conn) (replayable[animalstore.Order], error) {
		return writeOrReplay(c, idempotency, func() (animalstore.Order, error) { return insertOrder(c, by, petID, at) })
	})
	return placed.result, placed.replayed, err
}

// insertOrder inserts an order with its event, and changes the status of its pet.
func insertOrder(c *sqlite.Conn, by db.Origin, petID int64, at animalstore.Time) (order animalstore.Order, err error) {
	pet, err := selectPet(c, petID)
	if err != nil {
		return order, err
	}
	if order, err = db.NewOrder(&pet, at); err != nil {
		return order, err
	}
	err = execute(c, "insert order", "INSERT INTO orders (pet_id, status, created_at, updated_at) VALUES (?1, ?2, ?3, ?3)",
		petID, db.StoredIndex(animalstore.OrderStatuses, order.Status), at.Milli())
	if err != nil {
		return order, err
	}
	order.ID = c.LastInsertRowID()
	if err := insertEvent(c, by, animalstore.OrderCreated, order.ID, db.EventData(&order)); err != nil {
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
	return insertEvent(c, by, animalstore.PetUpdated, pet.ID, db.EventData(pet))
}

// Order implements [db.DB].
func (d *DB) Order(ctx context.Context, id int64) (animalstore.Order, error) {
	return resultOf(ctx, d.read, func(c *sqlite.Conn) (animalstore.Order, error) {
		return selectOrder(c, id)
	})
}

func selectOrder(c *sqlite.Conn, id int64) (animalstore.Order, error) {
	return selectOne(c, "select order", scanOrder, "SELECT "+orderColumns+" FROM orders WHERE id = ?", id)
}

// UpdateOrder implements [db.DB].
func (d *DB) UpdateOrder(ctx context.Context, id int64, change func(*animalstore.Order) error) (animalstore.Order, error) {
	by := db.OriginOf(ctx)
	return resultOf(ctx, d.writer.do, func(c *sqlite.Conn) (order animalstore.Order, err error) {
		if order, err = selectOrder(c, id); err != nil {
			return order, err
		}
		before := order
		if err := change(&order); err != nil || order == before {
			return order, err
		}
		err = execute(c, "update order", "UPDATE orders SET status = ?, updated_at = ? WHERE id = ?",
			db.StoredIndex(animalstore.OrderStatuses, order.Status), order.UpdatedAt.Milli(), id)
		if err != nil {
			return order, err
		}
		if err := insertEvent(c, by, animalstore.OrderUpdated, id, db.EventData(order)); err != nil {
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
	found, err := selectInt(c, "select open order", "SELECT 1 FROM orders WHERE pet_id = ? AND "+db.SQLOpenOrder, petID)
	return found != 0, err
}

// ?1 is the upper bound of ids, ?2 the limit, ?3 and ?4 the values of the filters.
var (
	listOrders         = "SELECT " + orderColumns + " FROM orders WHERE id < ?1 ORDER BY id DESC LIMIT +?2"
	listOrdersByStatus = "SELECT " + orderColumns + " FROM orders WHERE id < ?1 AND status = ?3 ORDER BY id DESC LIMIT +?2"
	listOrdersByBoth   = "SELECT " + orderColumns + " FROM orders WHERE id < ?1 AND status = ?3 AND pet_id = ?4 ORDER BY id DESC LIMIT +?2"
	listOrdersByPet    = mergeStatuses(len(animalstore.OrderStatuses), "SELECT "+orderColumns+" FROM orders WHERE id < ?1 AND pet_id = ?3 AND status = %d ORDER BY id DESC LIMIT +?2")
)

// orderListQuery returns the statement for q and its arguments.
func orderListQuery(q db.OrderQuery) (query string, args []any) {
	args = []any{db.UpperBound(q.Before), q.Limit}
	switch {
	case q.PetID != 0 && q.Status != "":
		return listOrdersByBoth, append(args, db.StoredIndex(animalstore.OrderStatuses, q.Status), q.PetID)
	case q.PetID != 0:
		return listOrdersByPet, append(args, q.PetID)
	case q.Status != "":
		return listOrdersByStatus, append(args, db.StoredIndex(animalstore.OrderStatuses, q.Status))
	}
	return listOrders, args
}

// Orders implements [db.DB].
func (d *DB) Orders(ctx context.Context, q db.OrderQuery) ([]animalstore.Order, error) {
	query, args := orderListQuery(q)
	return resultOf(ctx, d.read, func(c *sqlite.Conn) ([]animalstore.Order, error) {
		return selectAll(c, "select orders", scanOrder, query, args...)
	})
}

func scanOrder(stmt *sqlite.Stmt) (animalstore.Order, error) {
	order := animalstore.Order{
		ID:        stmt.ColumnInt64(0),
		PetID:     stmt.ColumnInt64(1),
		Status:    db.FromStored(animalstore.OrderStatuses, stmt.ColumnInt64(2)),
		CreatedAt: animalstore.AtMilli(stmt.ColumnInt64(3)),
		UpdatedAt: animalstore.AtMilli(stmt.ColumnInt64(4)),
	}
	if order.ID <= 0 || order.Status == "" { // it can't have been stored like this
		return order, fmt.Errorf("%w: order %d", errDamagedRow, order.ID)
	}
	return order, nil
}
