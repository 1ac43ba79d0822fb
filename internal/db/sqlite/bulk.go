package sqlite

import (
	"context"
	"fmt"
	"math"

	"animalstore"
	"animalstore/internal/db"

	"zombiezen.com/go/sqlite"
)

var _ db.Bulk = (*DB)(nil)

// Reserve implements [db.Bulk].
func (d *DB) Reserve(ctx context.Context, pets, orders int64) (lastPet, lastOrder int64, err error) {
	type ids struct{ pet, order int64 }
	last, err := resultOf(ctx, d.writer.do, func(c *sqlite.Conn) (last ids, err error) {
		if last.pet, err = reserve(c, "pets", pets); err != nil {
			return last, err
		}
		last.order, err = reserve(c, "orders", orders)
		return last, err
	})
	return last.pet, last.order, err
}

// reserve advances the highest id that SQLite remembers for a table with
// AUTOINCREMENT, and returns it as it was.
func reserve(c *sqlite.Conn, table string, n int64) (last int64, err error) {
	known := false
	err = selectEach(c, "select last id of "+table, func(r row) error {
		known = true
		return r.Scan(&last)
	}, "SELECT seq FROM sqlite_sequence WHERE name = ?", table)
	if err != nil {
		return 0, err
	}
	if n < 0 || n > math.MaxInt64-last {
		return 0, fmt.Errorf("reserve %d ids of %s after %d: there aren't that many", n, table, last)
	}
	if n == 0 {
		return last, nil
	}
	query := "UPDATE sqlite_sequence SET seq = ?2 WHERE name = ?1"
	if !known {
		query = "INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)"
	}
	return last, execute(c, "reserve ids of "+table, query, table, last+n)
}

// Load implements [db.Bulk].
func (d *DB) Load(ctx context.Context, rows db.Rows) error {
	err := d.writer.do(ctx, func(c *sqlite.Conn) error {
		for i := range rows.Categories {
			category := &rows.Categories[i]
			if err := execute(c, "load categories", "INSERT INTO categories (id, name) VALUES (?, ?)", category.ID, category.Name); err != nil {
				return err
			}
		}
		for i := range rows.Pets {
			pet := &rows.Pets[i]
			err := execute(c, "load pets", "INSERT INTO pets (id, name, category_id, status) VALUES (?, ?, ?, ?)",
				pet.ID, pet.Name, pet.CategoryID, db.StoredIndex(animalstore.PetStatuses, pet.Status))
			if err != nil {
				return err
			}
			if err := insertNameEntries(c, pet); err != nil {
				return err
			}
		}
		for i := range rows.Orders {
			order := &rows.Orders[i]
			err := execute(c, "load orders", "INSERT INTO orders ("+db.OrderColumns+") VALUES (?, ?, ?, ?, ?, ?, ?)",
				order.ID, order.PetID, db.StoredIndex(animalstore.OrderStatuses, order.Status), string(order.Reference), string(order.Note), order.CreatedAt.Milli(), order.UpdatedAt.Milli())
			if err != nil {
				return err
			}
		}
		for i := range rows.Photos {
			if _, err := insertPhoto(c, &rows.Photos[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if sqlite.ErrCode(err) == sqlite.ResultConstraintPrimaryKey {
		return fmt.Errorf("%w: %w", db.ErrExists, err)
	}
	return err
}
