package sqlite

import (
	"context"
	"errors"
	"fmt"
	"math"

	"animalstore"
	"animalstore/internal/db"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// maxKnownCategories bounds the memory for the categories that are known to exist.
const maxKnownCategories = 1024

// ensureCategory adds a category without a name, and its event, if it doesn't exist.
// Nothing deletes a category, so it is looked up only once.
func (d *DB) ensureCategory(c *sqlite.Conn, by db.Actor, id int64) error {
	known := d.writer.categories
	if known[id] {
		return nil
	}
	if len(known) == maxKnownCategories {
		clear(known)
	}
	known[id] = true // until this transaction is rolled back, if it is
	stmt, err := c.Prepare("INSERT INTO categories (id, name) VALUES (?, '') ON CONFLICT DO NOTHING")
	if err != nil {
		return fmt.Errorf("insert category: %w", err)
	}
	stmt.BindInt64(1, id)
	if _, err := stmt.Step(); err != nil {
		return fmt.Errorf("insert category: %w", err)
	}
	if c.Changes() == 0 {
		return nil
	}
	return insertEvent(c, by, animalstore.CategoryUpdated, id, db.EventData(animalstore.Category{ID: id}))
}

// Category implements [db.DB].
func (d *DB) Category(ctx context.Context, id int64) (animalstore.Category, error) {
	var category animalstore.Category
	err := d.readOwn(ctx, func(c *sqlite.Conn) (err error) {
		category, err = selectCategory(c, id)
		return err
	})
	return category, err
}

func selectCategory(c *sqlite.Conn, id int64) (animalstore.Category, error) {
	return selectByID(c, "category", "SELECT id, name FROM categories WHERE id = ?", id, scanCategory)
}

func scanCategory(stmt *sqlite.Stmt) animalstore.Category {
	return animalstore.Category{ID: stmt.ColumnInt64(0), Name: stmt.ColumnText(1)}
}

// Categories implements [db.DB].
func (d *DB) Categories(ctx context.Context, q db.CategoryQuery) ([]animalstore.Category, error) {
	// Every int64 is a valid id, so the first page includes the lowest.
	query, from := "SELECT id, name FROM categories WHERE id >= ? ORDER BY id LIMIT +?", int64(math.MinInt64)
	if q.After != nil {
		query, from = "SELECT id, name FROM categories WHERE id > ? ORDER BY id LIMIT +?", *q.After
	}
	categories := []animalstore.Category{}
	err := d.readOwn(ctx, func(c *sqlite.Conn) error {
		err := sqlitex.Execute(c, query, &sqlitex.ExecOptions{
			Args: []any{from, q.Limit},
			ResultFunc: func(stmt *sqlite.Stmt) error {
				categories = append(categories, scanCategory(stmt))
				return nil
			},
		})
		if err != nil {
			return fmt.Errorf("select categories: %w", err)
		}
		return nil
	})
	return categories, err
}

// PutCategory implements [db.DB].
func (d *DB) PutCategory(ctx context.Context, category animalstore.Category, check func(*animalstore.Category) error) (created bool, err error) {
	by := db.ActorOf(ctx)
	err = d.writer.do(ctx, func(c *sqlite.Conn) error {
		var known *animalstore.Category
		switch before, err := selectCategory(c, category.ID); {
		case err == nil:
			known = &before
		case !errors.Is(err, db.ErrNotFound):
			return err
		}
		if err := check(known); err != nil {
			return err
		}
		if created = known == nil; !created && *known == category {
			return nil
		}
		err := sqlitex.Execute(c, "INSERT INTO categories (id, name) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET name = excluded.name",
			&sqlitex.ExecOptions{Args: []any{category.ID, category.Name}})
		if err != nil {
			return fmt.Errorf("put category: %w", err)
		}
		return insertEvent(c, by, animalstore.CategoryUpdated, category.ID, db.EventData(category))
	})
	return created, err
}
