package postgres

import (
	"context"
	"math"

	"animalstore"
	"animalstore/internal/db"

	"github.com/jackc/pgx/v5"
)

const selectCategory = "SELECT id, name FROM categories WHERE id = $1"

// Category implements [db.DB].
func (d *DB) Category(ctx context.Context, id int64) (animalstore.Category, error) {
	return readOne(ctx, d, "select category", scanCategory, selectCategory, id)
}

func scanCategory(row pgx.Row) (animalstore.Category, error) {
	var c animalstore.Category
	err := row.Scan(&c.ID, &c.Name)
	return c, err
}

// Categories implements [db.DB].
func (d *DB) Categories(ctx context.Context, q db.CategoryQuery) ([]animalstore.Category, error) {
	// Every int64 is a valid id, so the first page includes the lowest.
	query, from := "SELECT id, name FROM categories WHERE id >= $1 ORDER BY id LIMIT $2", int64(math.MinInt64)
	if q.After != nil {
		query, from = "SELECT id, name FROM categories WHERE id > $1 ORDER BY id LIMIT $2", *q.After
	}
	return list(ctx, d, "select categories", q.Limit, scanCategory, query, from, q.Limit)
}

// Both add the event. They affect no row if there is nothing to change.
const (
	insertCategory = "WITH category AS (INSERT INTO categories (id, name) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING id) " + addEvents +
		"SELECT 5, id, $4::bigint, $5::bigint, $6, $3 FROM category"
	renameCategory = "WITH category AS (UPDATE categories SET name = $2 WHERE id = $1 AND name <> $2 RETURNING id) " + addEvents +
		"SELECT 5, id, $4::bigint, $5::bigint, $6, $3 FROM category"
)

// PutCategory implements [db.DB]. If several callers create a category at once, one
// inserts it and the others wait for that transaction.
func (d *DB) PutCategory(ctx context.Context, category animalstore.Category, check func(*animalstore.Category) error) (created bool, err error) {
	by := db.ActorOf(ctx)
	err = d.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		args := eventArgs(by, category.ID, category.Name, db.EventData(category))
		inserted, err := tx.Exec(ctx, insertCategory, args...)
		if err != nil {
			return failed("insert category", err)
		}
		if created = inserted.RowsAffected() == 1; created {
			return check(nil)
		}
		before, err := lockOne(ctx, tx, "lock category", scanCategory, selectCategory, category.ID)
		if err != nil {
			return err
		}
		if err := check(&before); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, renameCategory, eventArgs(by, category.ID, category.Name, db.EventData(category))...)
		return failed("update category", err)
	})
	return created && err == nil, err
}
