package postgres

import (
	"context"
	"errors"

	"animalstore"
	"animalstore/internal/db"

	"github.com/jackc/pgx/v5"
)

const orderColumns = "id, pet_id, status, created_at, updated_at"

// insertOrder adds an order, changes the status of its pet, and adds the events of
// both. $5 is the order's JSON from behind the id, $6 the pet's.
const insertOrder = `WITH placed AS (INSERT INTO orders (pet_id, status, created_at, updated_at) VALUES ($1, $2, $3, $3) RETURNING id),
	pet AS (UPDATE pets SET status = $4 WHERE id = $1 RETURNING id),
	event AS (` + addEvents + `
		SELECT 3, id, $7::bigint, $8::bigint, $9, '{"id":' || id || $5 FROM placed UNION ALL
		SELECT 1, id, $7, $8, $9, $6 FROM pet)
	SELECT id FROM placed`

// updateOrder stores the status of an order and adds its event.
const updateOrder = `WITH moved AS (UPDATE orders SET status = $2, updated_at = $3 WHERE id = $1 RETURNING id)
	` + addEvents + "SELECT 4, id, $5::bigint, $6::bigint, $7, $4 FROM moved"

// updateOrderAndPet does the same, and stores the status of the pet and adds its event.
const updateOrderAndPet = `WITH moved AS (UPDATE orders SET status = $2, updated_at = $3 WHERE id = $1 RETURNING id),
	pet AS (UPDATE pets SET status = $6 WHERE id = $5 RETURNING id)
	` + addEvents + `
	SELECT 4, id, $8::bigint, $9::bigint, $10, $4 FROM moved UNION ALL
	SELECT 1, id, $8, $9, $10, $7 FROM pet`

// PlaceOrder implements [db.DB]. The lock on the pet lets one caller through at a time;
// the index orders_open would refuse a second order anyway.
func (d *DB) PlaceOrder(ctx context.Context, petID int64, at animalstore.Time, retry *db.Idempotency) (order animalstore.Order, replayed bool, err error) {
	by := db.ActorOf(ctx)
	err = d.write(ctx, func(ctx context.Context, tx pgx.Tx) (err error) {
		replayed, err = writeOrReplay(ctx, tx, retry, &order, func() error {
			order = animalstore.Order{PetID: petID, Status: animalstore.OrderPlaced, CreatedAt: at, UpdatedAt: at}
			pet, _, err := lockPet(ctx, tx, petID)
			if err != nil {
				return err
			}
			if err := pet.CheckOrderable(); err != nil {
				return err
			}
			pet.Status = order.Status.PetStatus()
			err = tx.QueryRow(ctx, insertOrder, eventArgs(by, petID, statusIndex(orderStatuses, order.Status), at.Milli(),
				statusIndex(petStatuses, pet.Status), dataAfterID(order), db.EventData(&pet))...).Scan(&order.ID)
			return failed("insert order", err)
		})
		return err
	})
	return order, replayed, err
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
	by := db.ActorOf(ctx)
	err := d.write(ctx, func(ctx context.Context, tx pgx.Tx) (err error) {
		if order, err = lockOne(ctx, tx, "lock order", scanOrder, selectOrder, id); err != nil {
			return err
		}
		before := order
		if err := change(&order); err != nil || order == before {
			return err
		}
		args := []any{id, statusIndex(orderStatuses, order.Status), order.UpdatedAt.Milli(), db.EventData(order)}
		pet, changed, err := lockPetOf(ctx, tx, &before, &order)
		if err != nil {
			return err
		}
		query := updateOrder
		if changed {
			query, args = updateOrderAndPet, append(args, pet.ID, statusIndex(petStatuses, pet.Status), db.EventData(&pet))
		}
		_, err = tx.Exec(ctx, query, eventArgs(by, args...)...)
		return failed("update order", err)
	})
	return order, err
}

// lockPetOf locks the pet of an order, if the change of the order's status implies
// another one for the pet, and returns the pet with that.
func lockPetOf(ctx context.Context, tx pgx.Tx, before, order *animalstore.Order) (pet animalstore.Pet, changed bool, err error) {
	status := order.Status.PetStatus()
	if status == before.Status.PetStatus() {
		return pet, false, nil
	}
	pet, err = lockOne(ctx, tx, "lock pet", scanPet, selectPet, order.PetID)
	if errors.Is(err, db.ErrNotFound) {
		return pet, false, nil
	}
	changed = pet.Status != status
	pet.Status = status
	return pet, changed, err
}

// The parameters are those of the lists of pets.
var (
	listOrders         = "SELECT " + orderColumns + " FROM orders WHERE id < $1 ORDER BY id DESC LIMIT $2"
	listOrdersByStatus = "SELECT " + orderColumns + ` FROM orders
		WHERE (status, id) < ($3, $1) AND status >= $3 ORDER BY status DESC, id DESC LIMIT $2`
	listOrdersByBoth = "SELECT " + orderColumns + ` FROM orders
		WHERE (pet_id, status, id) < ($3, $4, $1) AND (pet_id, status) >= ($3, $4)
		ORDER BY pet_id DESC, status DESC, id DESC LIMIT $2`
	listOrdersByPet = mergeStatuses(len(orderStatuses), "SELECT "+orderColumns+` FROM orders
		WHERE (pet_id, status, id) < ($3, %[1]d, $1) AND (pet_id, status) >= ($3, %[1]d)
		ORDER BY pet_id DESC, status DESC, id DESC LIMIT $2`)
)

func orderListQuery(q db.OrderQuery) (query string, args []any) {
	args = []any{upperBound(q.Before), q.Limit}
	switch {
	case q.PetID != 0 && q.Status != "":
		return listOrdersByBoth, append(args, q.PetID, statusIndex(orderStatuses, q.Status))
	case q.PetID != 0:
		return listOrdersByPet, append(args, q.PetID)
	case q.Status != "":
		return listOrdersByStatus, append(args, statusIndex(orderStatuses, q.Status))
	}
	return listOrders, args
}

// Orders implements [db.DB].
func (d *DB) Orders(ctx context.Context, q db.OrderQuery) ([]animalstore.Order, error) {
	query, args := orderListQuery(q)
	return list(ctx, d, "select orders", q.Limit, scanOrder, query, args...)
}

func scanOrder(row pgx.Row) (animalstore.Order, error) {
	var order animalstore.Order
	var status int16
	var created, updated int64
	if err := row.Scan(&order.ID, &order.PetID, &status, &created, &updated); err != nil {
		return animalstore.Order{}, err
	}
	order.Status = orderStatuses[status]
	order.CreatedAt, order.UpdatedAt = animalstore.AtMilli(created), animalstore.AtMilli(updated)
	return order, nil
}
