package sqlite

import (
	"context"
	"fmt"

	"animalstore"
	"animalstore/internal/db"

	"zombiezen.com/go/sqlite"
)

// Orders implements [db.DB].
func (d *DB) Orders(ctx context.Context, q db.OrderQuery) ([]animalstore.Order, error) {
	query := "SELECT id, pet_id, status, created_at, updated_at FROM orders WHERE id < ?1"
	if q.PetID != 0 {
		query += " AND pet_id = ?3"
	}
	if q.Status != "" {
		query += " AND status = ?4"
	}
	query += " ORDER BY id DESC LIMIT ?2"

	orders := make([]animalstore.Order, 0, q.Limit)
	err := d.read(ctx, func(c *sqlite.Conn) error {
		stmt, err := c.Prepare(query)
		if err != nil {
			return fmt.Errorf("select orders: %w", err)
		}
		defer stmt.Reset()
		stmt.BindInt64(1, below(q.Before))
		stmt.BindInt64(2, int64(q.Limit))
		if q.PetID != 0 {
			stmt.BindInt64(3, q.PetID)
		}
		if q.Status != "" {
			stmt.BindInt64(4, number(orderStatuses, q.Status))
		}
		for {
			more, err := stmt.Step()
			if err != nil {
				return fmt.Errorf("select orders: %w", err)
			}
			if !more {
				return nil
			}
			orders = append(orders, animalstore.Order{
				ID:        stmt.ColumnInt64(0),
				PetID:     stmt.ColumnInt64(1),
				Status:    orderStatuses[stmt.ColumnInt64(2)],
				CreatedAt: animalstore.AtMilli(stmt.ColumnInt64(3)),
				UpdatedAt: animalstore.AtMilli(stmt.ColumnInt64(4)),
			})
		}
	})
	return orders, err
}
