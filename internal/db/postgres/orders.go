package postgres

import (
	"context"

	"animalstore"
	"animalstore/internal/db"

	"github.com/jackc/pgx/v5"
)

const orderColumns = "id, pet_id, status, created_at, updated_at"

// PlaceOrder implements [db.DB]. The lock on the pet lets one caller through at a time;
// the index orders_open would refuse a second order anyway.
func (d *DB) PlaceOrder(ctx context.Context, petID int64, at animalstore.Time, retry *db.Idempotency) (order animalstore.Order, replayed bool, err error) {
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
			err = tx.QueryRow(ctx, "INSERT INTO orders (pet_id, status, created_at, updated_at) VALUES ($1, $2, $3, $3) RETURNING id",
				petID, statusIndex(orderStatuses, order.Status), at.Milli()).Scan(&order.ID)
			if err != nil {
				return failed("insert order", err)
			}
			return setPetStatus(ctx, tx, petID, order.Status.PetStatus())
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
	err := d.write(ctx, func(ctx context.Context, tx pgx.Tx) (err error) {
		if order, err = lockOne(ctx, tx, "lock order", scanOrder, selectOrder, id); err != nil {
			return err
		}
		before := order
		if err := change(&order); err != nil || order == before {
			return err
		}
		_, err = tx.Exec(ctx, "UPDATE orders SET status = $2, updated_at = $3 WHERE id = $1",
			id, statusIndex(orderStatuses, order.Status), order.UpdatedAt.Milli())
		if err != nil {
			return failed("update order", err)
		}
		return setPetStatus(ctx, tx, order.PetID, order.Status.PetStatus())
	})
	return order, err
}

// setPetStatus stores the status that an order implies for its pet.
func setPetStatus(ctx context.Context, tx pgx.Tx, petID int64, status animalstore.PetStatus) error {
	_, err := tx.Exec(ctx, "UPDATE pets SET status = $2 WHERE id = $1", petID, statusIndex(petStatuses, status))
	return failed("update status of pet", err)
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
