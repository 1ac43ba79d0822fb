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
	return readOne(ctx, d, "select category", db.ScanCategory, selectCategory, id)
}

// Categories implements [db.DB].
func (d *DB) Categories(ctx context.Context, q db.CategoryQuery) ([]animalstore.Category, error) {
	// Every int64 is a valid id, so the first page includes the lowest.
	query, from := "SELECT id, name FROM categories WHERE id >= $1 ORDER BY id LIMIT $2", int64(math.MinInt64)
	if q.After != nil {
		query, from = "SELECT id, name FROM categories WHERE id > $1 ORDER BY id LIMIT $2", *q.After
	}
	return listPage(ctx, d, "select categories", q.Limit, db.ScanCategory, query, from, q.Limit)
}

// PutCategory implements [db.DB]. If several callers create a category at once, one
// inserts it and the others wait for that transaction.
func (d *DB) PutCategory(ctx context.Context, category animalstore.Category, check func(*animalstore.Category) error) (created bool, err error) {
	err = d.write(ctx, func(ctx context.Context, tx pgx.Tx) (err error) {
		if created, err = insertCategory(ctx, tx, category); err != nil {
			return err
		}
		if created {
			return check(nil)
		}
		before, err := lockOne(ctx, tx, "lock category", db.ScanCategory, selectCategory, category.ID)
		if err != nil {
			return err
		}
		if err := check(&before); err != nil || before == category {
			return err
		}
		var batch pgx.Batch
		batch.Queue("UPDATE categories SET name = $2 WHERE id = $1", category.ID, category.Name)
		queueEvent(ctx, &batch, animalstore.CategoryUpdated, category.ID, db.EventData(category))
		return send(ctx, tx, "update category", &batch)
	})
	return created && err == nil, err
}

// insertCategory adds a category and its event, unless it exists.
func insertCategory(ctx context.Context, tx pgx.Tx, category animalstore.Category) (created bool, err error) {
	inserted, err := tx.Exec(ctx, "INSERT INTO categories (id, name) VALUES ($1, $2) ON CONFLICT DO NOTHING", category.ID, category.Name)
	if err != nil || inserted.RowsAffected() == 0 {
		return false, failed("insert category", err)
	}
	var batch pgx.Batch
	queueEvent(ctx, &batch, animalstore.CategoryUpdated, category.ID, db.EventData(category))
	return true, send(ctx, tx, "insert category", &batch)
}
