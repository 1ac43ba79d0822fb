package sqlite

import (
	"context"
	"fmt"
	"math"

	"animalstore"
	"animalstore/internal/db"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

var _ db.Bulk = (*DB)(nil)

// Reserve implements [db.Bulk].
func (d *DB) Reserve(ctx context.Context, pets, orders int64) (lastPet, lastOrder int64, err error) {
	err = d.writer.do(ctx, func(c *sqlite.Conn) (err error) {
		if lastPet, err = reserve(c, "pets", pets); err != nil {
			return err
		}
		lastOrder, err = reserve(c, "orders", orders)
		return err
	})
	return lastPet, lastOrder, err
}

// reserve advances the highest id that SQLite remembers for a table with
// AUTOINCREMENT, and returns it as it was.
func reserve(c *sqlite.Conn, table string, n int64) (last int64, err error) {
	known := false
	err = sqlitex.Execute(c, "SELECT seq FROM sqlite_sequence WHERE name = ?", &sqlitex.ExecOptions{
		Args:       []any{table},
		ResultFunc: func(stmt *sqlite.Stmt) error { known, last = true, stmt.ColumnInt64(0); return nil },
	})
	if err != nil {
		return 0, fmt.Errorf("select last id of %s: %w", table, err)
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
	if err := sqlitex.Execute(c, query, &sqlitex.ExecOptions{Args: []any{table, last + n}}); err != nil {
		return 0, fmt.Errorf("reserve ids of %s: %w", table, err)
	}
	return last, nil
}

// Load implements [db.Bulk].
func (d *DB) Load(ctx context.Context, rows db.Rows) error {
	err := d.writer.do(ctx, func(c *sqlite.Conn) error {
		err := insertAll(c, "INSERT INTO categories (id, name) VALUES (?, ?)", rows.Categories,
			func(stmt *sqlite.Stmt, category *animalstore.Category) {
				stmt.BindInt64(1, category.ID)
				stmt.BindText(2, category.Name)
			})
		if err != nil {
			return fmt.Errorf("load categories: %w", err)
		}
		err = insertAll(c, "INSERT INTO pets (id, name, category_id, status) VALUES (?, ?, ?, ?)", rows.Pets,
			func(stmt *sqlite.Stmt, pet *animalstore.Pet) {
				stmt.BindInt64(1, pet.ID)
				stmt.BindText(2, pet.Name)
				stmt.BindInt64(3, pet.CategoryID)
				stmt.BindInt64(4, statusIndex(petStatuses, pet.Status))
			})
		if err != nil {
			return fmt.Errorf("load pets: %w", err)
		}
		err = insertAll(c, "INSERT INTO orders (id, pet_id, status, created_at, updated_at) VALUES (?, ?, ?, ?, ?)", rows.Orders,
			func(stmt *sqlite.Stmt, order *animalstore.Order) {
				stmt.BindInt64(1, order.ID)
				stmt.BindInt64(2, order.PetID)
				stmt.BindInt64(3, statusIndex(orderStatuses, order.Status))
				stmt.BindInt64(4, order.CreatedAt.Milli())
				stmt.BindInt64(5, order.UpdatedAt.Milli())
			})
		if err != nil {
			return fmt.Errorf("load orders: %w", err)
		}
		return nil
	})
	if sqlite.ErrCode(err) == sqlite.ResultConstraintPrimaryKey {
		return fmt.Errorf("%w: %w", db.ErrExists, err)
	}
	return err
}

func insertAll[Row any](c *sqlite.Conn, query string, rows []Row, bind func(*sqlite.Stmt, *Row)) error {
	stmt, err := c.Prepare(query)
	if err != nil {
		return err
	}
	for i := range rows {
		bind(stmt, &rows[i])
		if _, err := stmt.Step(); err != nil {
			stmt.Reset()
			return err
		}
		if err := stmt.Reset(); err != nil {
			return err
		}
	}
	return nil
}
