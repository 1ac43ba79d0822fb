package postgres

import (
	"context"
	"errors"

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

// Filtered orders are read from indexes that are sorted by status and id, each status only
// up to the limit. The indexes have no empty references. Like the lists of pets, each compares and
// orders by the columns of its index.
var (
	newestOrders = db.OrderLists{
		All: "SELECT " + db.OrderColumns + " FROM orders WHERE id < $1 ORDER BY id DESC LIMIT $2",
		ByStatus: "SELECT " + db.OrderColumns + ` FROM orders
			WHERE (status, id) < ($3, $1) AND status >= $3 ORDER BY status DESC, id DESC LIMIT $2`,
		ByStatuses: "SELECT o.* FROM unnest($3::smallint[]) AS one " +
			"CROSS JOIN LATERAL (SELECT " + db.OrderColumns + ` FROM orders
			WHERE (status, id) < (one, $1) AND status >= one
			ORDER BY status DESC, id DESC LIMIT $2) AS o ORDER BY id DESC LIMIT $2`,
		OfPet: "SELECT o.* FROM unnest($3::smallint[]) AS one " +
			"CROSS JOIN LATERAL (SELECT " + db.OrderColumns + ` FROM orders
			WHERE (pet_id, status, id) < ($4, one, $1) AND (pet_id, status) >= ($4, one)
			ORDER BY pet_id DESC, status DESC, id DESC LIMIT $2) AS o ORDER BY id DESC LIMIT $2`,
		ByReference: "SELECT o.* FROM unnest($3::smallint[]) AS one " +
			"CROSS JOIN LATERAL (SELECT " + db.OrderColumns + ` FROM orders
			WHERE reference <> '' AND (reference, status, id) < ($4, one, $1) AND (reference, status) >= ($4, one)
			ORDER BY reference DESC, status DESC, id DESC LIMIT $2) AS o ORDER BY id DESC LIMIT $2`,
		OfPetByReference: "SELECT o.* FROM unnest($3::smallint[]) AS one " +
			"CROSS JOIN LATERAL (SELECT " + db.OrderColumns + ` FROM orders
			WHERE pet_id = $4 AND reference <> '' AND (reference, status, id) < ($5, one, $1) AND (reference, status) >= ($5, one)
			ORDER BY reference DESC, status DESC, id DESC LIMIT $2) AS o ORDER BY id DESC LIMIT $2`,
	}
	oldestOrders = db.OrderLists{
		All: "SELECT " + db.OrderColumns + " FROM orders WHERE id > $1 ORDER BY id LIMIT $2",
		ByStatus: "SELECT " + db.OrderColumns + ` FROM orders
			WHERE (status, id) > ($3, $1) AND (status, id) <= ($3, 9223372036854775807) ORDER BY status, id LIMIT $2`,
		ByStatuses: "SELECT o.* FROM unnest($3::smallint[]) AS one " +
			"CROSS JOIN LATERAL (SELECT " + db.OrderColumns + ` FROM orders
			WHERE (status, id) > (one, $1) AND status <= one
			ORDER BY status, id LIMIT $2) AS o ORDER BY id LIMIT $2`,
		OfPet: "SELECT o.* FROM unnest($3::smallint[]) AS one " +
			"CROSS JOIN LATERAL (SELECT " + db.OrderColumns + ` FROM orders
			WHERE (pet_id, status, id) > ($4, one, $1) AND (pet_id, status) <= ($4, one)
			ORDER BY pet_id, status, id LIMIT $2) AS o ORDER BY id LIMIT $2`,
		ByReference: "SELECT o.* FROM unnest($3::smallint[]) AS one " +
			"CROSS JOIN LATERAL (SELECT " + db.OrderColumns + ` FROM orders
			WHERE reference <> '' AND (reference, status, id) > ($4, one, $1) AND (reference, status) <= ($4, one)
			ORDER BY reference, status, id LIMIT $2) AS o ORDER BY id LIMIT $2`,
		OfPetByReference: "SELECT o.* FROM unnest($3::smallint[]) AS one " +
			"CROSS JOIN LATERAL (SELECT " + db.OrderColumns + ` FROM orders
			WHERE pet_id = $4 AND reference <> '' AND (reference, status, id) > ($5, one, $1) AND (reference, status) <= ($5, one)
			ORDER BY reference, status, id LIMIT $2) AS o ORDER BY id LIMIT $2`,
	}
)

// Orders implements [db.DB].
func (d *DB) Orders(ctx context.Context, q animalstore.OrderQuery, page db.Page) ([]animalstore.Order, error) {
	statement, args := db.OrderStatement(&newestOrders, &oldestOrders, q, page)
	return list(ctx, d, "select orders", db.ScanOrder, statement, args...)
}
