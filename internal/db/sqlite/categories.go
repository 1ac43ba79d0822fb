package sqlite

import (
	"context"
	"errors"
	"math"

	"animalstore"
	"animalstore/internal/db"

	"zombiezen.com/go/sqlite"
)

// ensureCategory adds a category without a name, and its event, if it doesn't exist.
func ensureCategory(c *sqlite.Conn, by db.Origin, id int64) error {
	err := execute(c, "insert category", "INSERT INTO categories (id, name) VALUES (?, '') ON CONFLICT DO NOTHING", id)
	if err != nil || c.Changes() == 0 {
		return err
	}
	return insertEvent(c, by, animalstore.CategoryUpdated, id, db.EventData(animalstore.Category{ID: id}))
}

const selectCategory = "SELECT id, name FROM categories WHERE id = ?"

// Category implements [db.DB].
func (d *DB) Category(ctx context.Context, id int64) (animalstore.Category, error) {
	return readOne(ctx, d, "select category", db.ScanCategory, selectCategory, id)
}

// Categories implements [db.DB].
func (d *DB) Categories(ctx context.Context, q db.CategoryQuery) ([]animalstore.Category, error) {
	// Every int64 is a valid id, so the first page includes the lowest.
	query, from := "SELECT id, name FROM categories WHERE id >= ? ORDER BY id LIMIT +?", int64(math.MinInt64)
	if q.After != nil {
		query, from = "SELECT id, name FROM categories WHERE id > ? ORDER BY id LIMIT +?", *q.After
	}
	return list(ctx, d, "select categories", db.ScanCategory, query, from, q.Limit)
}

// PutCategory implements [db.DB].
func (d *DB) PutCategory(ctx context.Context, category animalstore.Category, check func(*animalstore.Category) error) (created bool, err error) {
	by := db.OriginOf(ctx)
	return resultOf(ctx, d.writer.do, func(c *sqlite.Conn) (created bool, err error) {
		var known *animalstore.Category
		switch before, err := selectOne(c, "select category", db.ScanCategory, selectCategory, category.ID); {
		case err == nil:
			known = &before
		case !errors.Is(err, db.ErrNotFound):
			return false, err
		}
		if err := check(known); err != nil {
			return false, err
		}
		if created = known == nil; !created && *known == category {
			return false, nil
		}
		err = execute(c, "put category", "INSERT INTO categories (id, name) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET name = excluded.name", category.ID, category.Name)
		if err != nil {
			return false, err
		}
		return created, insertEvent(c, by, animalstore.CategoryUpdated, category.ID, db.EventData(category))
	})
}
