package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"animalstore"
	"animalstore/internal/db"

	"github.com/jackc/pgx/v5"
)

// PlaceOrder implements [db.DB]. The lock on the pet lets one caller through at a time;
// the index orders_open would refuse a second order anyway.
func (d *DB) PlaceOrder(ctx context.Context, in animalstore.NewOrder, at animalstore.Time, idempotency *db.Idempotency) (order animalstore.Order, replayed bool, err error) {
	err = d.write(ctx, func(ctx context.Context, tx pgx.Tx) (err error) {
		replayed, err = writeOrReplay(ctx, tx, idempotency, &order, func() error {
			pet, err := lockOne(ctx, tx, "lock pet", db.ScanPet, selectPet, in.PetID)
			if err != nil {
				return err
			}
			if order, err = db.NewOrder(in, &pet, at); err != nil {
				return err
			}
			err = tx.QueryRow(ctx, "INSERT INTO orders (pet_id, status, reference, note, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $5) RETURNING id",
				pet.ID, db.StoredIndex(animalstore.OrderStatuses, order.Status), string(order.Reference), string(order.Note), at.Milli()).Scan(&order.ID)
			if err != nil {
				return failed("insert order", err)
			}
			var batch pgx.Batch
			queuePetEvent(ctx, &batch, animalstore.OrderCreated, order.ID, pet.ID, db.EventData(order))
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
	queuePetEvent(ctx, batch, animalstore.PetUpdated, pet.ID, pet.ID, db.EventData(pet))
}

const selectOrder = "SELECT " + db.OrderColumns + " FROM orders WHERE id = $1"

// Order implements [db.DB].
func (d *DB) Order(ctx context.Context, id int64) (animalstore.Order, error) {
	return readOne(ctx, d, "select order", db.ScanOrder, selectOrder, id)
}

// UpdateOrder implements [db.DB]. It locks the order, then the pet. Operations that lock
// the pet first don't lock an order, so there is no deadlock.
func (d *DB) UpdateOrder(ctx context.Context, id int64, change func(*animalstore.Order) error) (animalstore.Order, error) {
	var order animalstore.Order
	err := d.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		before, err := lockOne(ctx, tx, "lock order", db.ScanOrder, selectOrder, id)
		if err != nil {
			return err
		}
		order = before
		if err := change(&order); err != nil || order == before {
			return err
		}
		var batch pgx.Batch
		batch.Queue("UPDATE orders SET status = $2, reference = $3, note = $4, updated_at = $5 WHERE id = $1",
			id, db.StoredIndex(animalstore.OrderStatuses, order.Status), string(order.Reference), string(order.Note), order.UpdatedAt.Milli())
		queuePetEvent(ctx, &batch, animalstore.OrderUpdated, id, order.PetID, db.EventData(order))
		if order.Status == before.Status {
			return send(ctx, tx, "update order", &batch)
		}
		pet, err := lockOne(ctx, tx, "lock pet", db.ScanPet, selectPet, order.PetID)
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

// orderListQuery returns the statement for q and its arguments: $1 is the id that the page
// begins after, $2 the limit, then come the values of the filters. Like the lists of pets,
// each compares and orders by the columns of its index.
func orderListQuery(q db.OrderQuery) (query string, args []any) {
	past, direction, within, last := "<", " DESC", ">=", int64(0)
	args = []any{db.UpperBound(q.After), q.Limit}
	if q.Oldest {
		past, direction, within, last, args[0] = ">", "", "<=", math.MaxInt64, q.After
	}
	query = "SELECT " + db.OrderColumns + " FROM orders WHERE "
	end := " ORDER BY id" + direction + " LIMIT $2"
	statuses := q.SQLStatuses()
	if statuses == nil {
		return query + "id " + past + " $1" + end, args
	}
	columns, values := "status", "%[1]d"
	switch {
	case q.Reference != "": // the indexes have no empty ones
		args = append(args, string(q.Reference))
		columns, values = "reference, status", "$3, %[1]d"
		query += "reference <> '' AND "
		if q.PetID != 0 {
			args = append(args, q.PetID)
			query += "pet_id = $4 AND "
		}
	case q.PetID != 0:
		args = append(args, q.PetID)
		columns, values = "pet_id, status", "$3, %[1]d"
	}
	order := strings.ReplaceAll(columns, ",", direction+",") + direction
	query += fmt.Sprintf("(%[1]s, id) %[3]s (%[2]s, $1) AND (%[1]s, id) %[4]s (%[2]s, %[5]d) ORDER BY %[6]s, id%[7]s LIMIT $2",
		columns, values, past, within, last, order, direction)
	return mergeStatuses(statuses, query, end), args
}

// Orders implements [db.DB].
func (d *DB) Orders(ctx context.Context, q db.OrderQuery) ([]animalstore.Order, error) {
	query, args := orderListQuery(q)
	return list(ctx, d, "select orders", db.ScanOrder, query, args...)
}
