package sqlite

import (
	"context"
	"errors"
	"fmt"

	"animalstore"
	"animalstore/internal/db"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

const orderColumns = "id, pet_id, status, created_at, updated_at"

// PlaceOrder implements [db.DB].
func (d *DB) PlaceOrder(ctx context.Context, petID int64, at animalstore.Time, retry *db.Idempotency) (order animalstore.Order, replayed bool, err error) {
	by := db.ActorOf(ctx)
	err = d.writer.do(ctx, func(c *sqlite.Conn) (err error) {
		replayed, err = writeOrReplay(c, retry, &order, func() error {
			order = animalstore.Order{PetID: petID, Status: animalstore.OrderPlaced, CreatedAt: at, UpdatedAt: at}
			pet, err := selectPet(c, petID)
			if err != nil {
				return err
			}
			if err := pet.CheckOrderable(); err != nil {
				return err
			}
			err = sqlitex.Execute(c, "INSERT INTO orders (pet_id, status, created_at, updated_at) VALUES (?, ?, ?, ?)",
				&sqlitex.ExecOptions{Args: []any{petID, statusIndex(orderStatuses, order.Status), at.Milli(), at.Milli()}})
			if err != nil {
				return fmt.Errorf("insert order: %w", err)
			}
			order.ID = c.LastInsertRowID()
			if err := insertEvent(c, by, animalstore.OrderCreated, order.ID, db.EventData(order)); err != nil {
				return err
			}
			return d.setPetStatus(c, by, pet, order.Status.PetStatus())
		})
		return err
	})
	return order, replayed, err
}

// Order implements [db.DB].
func (d *DB) Order(ctx context.Context, id int64) (animalstore.Order, error) {
	var order animalstore.Order
	err := d.readOwn(ctx, func(c *sqlite.Conn) (err error) {
		order, err = selectOrder(c, id)
		return err
	})
	return order, err
}

func selectOrder(c *sqlite.Conn, id int64) (animalstore.Order, error) {
	order, err := selectByID(c, "order", "SELECT "+orderColumns+" FROM orders WHERE id = ?", id, scanOrder)
	if err != nil {
		return order, err
	}
	return order, checkOrder(&order)
}

// UpdateOrder implements [db.DB].
func (d *DB) UpdateOrder(ctx context.Context, id int64, change func(*animalstore.Order) error) (animalstore.Order, error) {
	var order animalstore.Order
	by := db.ActorOf(ctx)
	err := d.writer.do(ctx, func(c *sqlite.Conn) (err error) {
		if order, err = selectOrder(c, id); err != nil {
			return err
		}
		before := order
		if err := change(&order); err != nil || order == before {
			return err
		}
		err = sqlitex.Execute(c, "UPDATE orders SET status = ?, updated_at = ? WHERE id = ?",
			&sqlitex.ExecOptions{Args: []any{statusIndex(orderStatuses, order.Status), order.UpdatedAt.Milli(), id}})
		if err != nil {
			return fmt.Errorf("update order: %w", err)
		}
		if err := insertEvent(c, by, animalstore.OrderUpdated, id, db.EventData(order)); err != nil {
			return err
		}
		return d.applyToPet(c, by, &order)
	})
	return order, err
}

// applyToPet stores the status that an order implies for its pet, if it exists.
func (d *DB) applyToPet(c *sqlite.Conn, by db.Actor, order *animalstore.Order) error {
	pet, err := selectPet(c, order.PetID)
	if errors.Is(err, db.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return d.setPetStatus(c, by, pet, order.Status.PetStatus())
}

// setPetStatus stores the status of a pet, unless it has that one.
func (d *DB) setPetStatus(c *sqlite.Conn, by db.Actor, pet animalstore.Pet, status animalstore.PetStatus) error {
	if pet.Status == status {
		return nil
	}
	pet.Status = status
	d.markChanged(pet.ID)
	err := sqlitex.Execute(c, "UPDATE pets SET status = ? WHERE id = ?",
		&sqlitex.ExecOptions{Args: []any{statusIndex(petStatuses, status), pet.ID}})
	if err != nil {
		return fmt.Errorf("update status of pet: %w", err)
	}
	return insertEvent(c, by, animalstore.PetUpdated, pet.ID, db.EventData(&pet))
}

// hasOpenOrder reads only the open order: orders_by_pet is sorted by status.
func hasOpenOrder(c *sqlite.Conn, petID int64) (bool, error) {
	found := false
	err := sqlitex.Execute(c, "SELECT 1 FROM orders WHERE pet_id = ? AND status <= 1", &sqlitex.ExecOptions{
		Args:       []any{petID},
		ResultFunc: func(*sqlite.Stmt) error { found = true; return nil },
	})
	if err != nil {
		return false, fmt.Errorf("select open order: %w", err)
	}
	return found, nil
}

// The parameters are those of the lists of pets, with the pet in ?4.
var (
	listOrders         = "SELECT " + orderColumns + " FROM orders WHERE id < ?1 ORDER BY id DESC LIMIT +?2"
	listOrdersByStatus = "SELECT " + orderColumns + " FROM orders WHERE id < ?1 AND status = ?3 ORDER BY id DESC LIMIT +?2"
	listOrdersByBoth   = "SELECT " + orderColumns + " FROM orders WHERE id < ?1 AND status = ?3 AND pet_id = ?4 ORDER BY id DESC LIMIT +?2"
	listOrdersByPet    = mergeStatuses(len(orderStatuses), "SELECT "+orderColumns+" FROM orders WHERE id < ?1 AND pet_id = ?4 AND status = %d ORDER BY id DESC LIMIT +?2")
)

func orderListQuery(q db.OrderQuery) string {
	switch {
	case q.PetID != 0 && q.Status != "":
		return listOrdersByBoth
	case q.PetID != 0:
		return listOrdersByPet
	case q.Status != "":
		return listOrdersByStatus
	}
	return listOrders
}

// Orders implements [db.DB].
func (d *DB) Orders(ctx context.Context, q db.OrderQuery) ([]animalstore.Order, error) {
	orders := make([]animalstore.Order, 0, q.Limit)
	err := d.readOwn(ctx, func(c *sqlite.Conn) error {
		stmt, err := c.Prepare(orderListQuery(q))
		if err != nil {
			return fmt.Errorf("select orders: %w", err)
		}
		defer stmt.Reset()
		stmt.BindInt64(1, upperBound(q.Before))
		stmt.BindInt64(2, int64(q.Limit))
		if q.Status != "" {
			stmt.BindInt64(3, statusIndex(orderStatuses, q.Status))
		}
		if q.PetID != 0 {
			stmt.BindInt64(4, q.PetID)
		}
		for {
			more, err := stmt.Step()
			if err != nil {
				return fmt.Errorf("select orders: %w", err)
			}
			if !more {
				return nil
			}
			order := scanOrder(stmt)
			if err := checkOrder(&order); err != nil {
				return err
			}
			orders = append(orders, order)
		}
	})
	return orders, err
}

func scanOrder(stmt *sqlite.Stmt) animalstore.Order {
	return animalstore.Order{
		ID:        stmt.ColumnInt64(0),
		PetID:     stmt.ColumnInt64(1),
		Status:    statusAt(orderStatuses, stmt.ColumnInt64(2)),
		CreatedAt: animalstore.AtMilli(stmt.ColumnInt64(3)),
		UpdatedAt: animalstore.AtMilli(stmt.ColumnInt64(4)),
	}
}
