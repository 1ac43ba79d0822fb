package postgres

import (
	"context"
	"errors"

	"animalstore"
	"animalstore/internal/db"

	"github.com/jackc/pgx/v5"
)

const orderColumns = "id, pet_id, status, created_at, updated_at"

// PlaceOrder implements [db.DB]. The lock on the pet lets one caller through at a time;
// the index orders_open would refuse a second order anyway.
func (d *DB) PlaceOrder(ctx context.Context, petID int64, at animalstore.Time, idempotency *db.Idempotency) (order animalstore.Order, replayed bool, err error) {
	err = d.write(ctx, func(ctx context.Context, tx pgx.Tx) (err error) {
		replayed, err = writeOrReplay(ctx, tx, idempotency, &order, func() error {
			pet, err := lockOne(ctx, tx, "lock pet", scanPet, selectPet, petID)
			if err != nil {
				return err
			}
			if order, err = db.NewOrder(&pet, at); err != nil {
				return err
			}
			err = tx.QueryRow(ctx, "INSERT INTO orders (pet_id, status, created_at, updated_at) VALUES ($1, $2, $3, $3) RETURNING id",
				petID, db.StoredIndex(animalstore.OrderStatuses, order.Status), at.Milli()).Scan(&order.ID)
			if err != nil {
				return failed("insert order", err)
			}
			var batch pgx.Batch
			queueEvent(ctx, &batch, animalstore.OrderCreated, order.ID, db.EventData(order))
			updatePetStatus(ctx, &batch, &pet)
			return send(ctx, tx, "insert order", &batch)
		})
		return err
	})
	return order, replayed, err
}

// updatePetStatus adds the statements that store the status of a pet and its event.
func updatePetStatus(ctx context.Context, batch *pgx.Batch, pet *animalstore.Pet) {
	batch.Queue("UPDATE pets SET status = $2 WHERE id = $1", pet.ID, db.StoredIndex(animalstore.PetStatuses, pet.Status))
	queueEvent(ctx, batch, animalstore.PetUpdated, pet.ID, db.EventData(pet))
}

const selectOrder = "SELECT " + orderColumns + " FROM orders WHERE id = $1"

// Order implements [db.DB].
func (d *DB) Order(ctx context.Context, id int64) (animalstore.Order, error) {
	return readOne(ctx, d, "select order", scanOrder, selectOrder, id)
}

// UpdateOrder implements [db.DB]. It locks the order, then the pet. Operations that lock
// the pet first don't lock an order, so there is no deadlock.
func (d *DB) UpdateOrder(ctx context.Context, id int64, change func(*animalstore.Order) error) (animalstore.Order, error) {
	var order animalstore.Order
	err := d.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		before, err := lockOne(ctx, tx, "lock order", scanOrder, selectOrder, id)
		if err != nil {
			return err
		}
		order = before
		if err := change(&order); err != nil || order == before {
			return err
		}
		var batch pgx.Batch
		batch.Queue("UPDATE orders SET status = $2, updated_at = $3 WHERE id = $1",
			id, db.StoredIndex(animalstore.OrderStatuses, order.Status), order.UpdatedAt.Milli())
		queueEvent(ctx, &batch, animalstore.OrderUpdated, id, db.EventData(order))
		pet, err := lockOne(ctx, tx, "lock pet", scanPet, selectPet, order.PetID)
		switch status := order.Status.PetStatus(); {
		case errors.Is(err, db.ErrNotFound): // it was removed
		case err != nil:
			return err
		case pet.Status != status:
			pet.Status = status
			updatePetStatus(ctx, &batch, &pet)
		}
		return send(ctx, tx, "update order", &batch)
	})
	return order, err
}

// $1 is the upper bound of ids, $2 the limit, $3 and $4 the values of the filters.
var (
	listOrders         = "SELECT " + orderColumns + " FROM orders WHERE id < $1 ORDER BY id DESC LIMIT $2"
	listOrdersByStatus = "SELECT " + orderColumns + ` FROM orders
		WHERE (status, id) < ($3, $1) AND status >= $3 ORDER BY status DESC, id DESC LIMIT $2`
	listOrdersByBoth = "SELECT " + orderColumns + ` FROM orders
		WHERE (pet_id, status, id) < ($3, $4, $1) AND (pet_id, status) >= ($3, $4)
		ORDER BY pet_id DESC, status DESC, id DESC LIMIT $2`
	listOrdersByPet = mergeStatuses(len(animalstore.OrderStatuses), "SELECT "+orderColumns+` FROM orders
		WHERE (pet_id, status, id) < ($3, %[1]d, $1) AND (pet_id, status) >= ($3, %[1]d)
		ORDER BY pet_id DESC, status DESC, id DESC LIMIT $2`)
)

func orderListQuery(q db.OrderQuery) (query string, args []any) {
	args = []any{db.UpperBound(q.Before), q.Limit}
	switch {
	case q.PetID != 0 && q.Status != "":
		return listOrdersByBoth, append(args, q.PetID, db.StoredIndex(animalstore.OrderStatuses, q.Status))
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
	return list(ctx, d, "select orders", scanOrder, query, args...)
}

func scanOrder(row pgx.Row) (animalstore.Order, error) {
	var order animalstore.Order
	var status, created, updated int64
	err := row.Scan(&order.ID, &order.PetID, &status, &created, &updated)
	order.Status = db.FromStored(animalstore.OrderStatuses, status)
	order.CreatedAt, order.UpdatedAt = animalstore.AtMilli(created), animalstore.AtMilli(updated)
	return order, err
}
