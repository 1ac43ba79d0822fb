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

// ensureCategory adds a category without a name, unless there is one.
func ensureCategory(c *sqlite.Conn, id int64) error {
	stmt, err := c.Prepare("INSERT INTO categories (id, name) VALUES (?, '') ON CONFLICT DO NOTHING")
	if err != nil {
		return fmt.Errorf("insert category: %w", err)
	}
	stmt.BindInt64(1, id)
	if _, err := stmt.Step(); err != nil {
		return fmt.Errorf("insert category: %w", err)
	}
	return nil
}

// Category implements [db.DB].
func (d *DB) Category(ctx context.Context, id int64) (animalstore.Category, error) {
	var category *animalstore.Category
	err := d.readOwn(ctx, func(c *sqlite.Conn) (err error) {
		category, err = selectCategory(c, id)
		return err
	})
	if err != nil {
		return animalstore.Category{}, err
	}
	if category == nil {
		return animalstore.Category{}, animalstore.Errorf(animalstore.CategoryNotFound, "there is no category with id %d", id)
	}
	return *category, nil
}

// selectCategory returns nil where there is none.
func selectCategory(c *sqlite.Conn, id int64) (*animalstore.Category, error) {
	var category *animalstore.Category
	err := sqlitex.Execute(c, "SELECT id, name FROM categories WHERE id = ?", &sqlitex.ExecOptions{
		Args: []any{id},
		ResultFunc: func(stmt *sqlite.Stmt) error {
			category = &animalstore.Category{ID: stmt.ColumnInt64(0), Name: stmt.ColumnText(1)}
			return nil
		},
	})
	if err != nil {
		return nil, fmt.Errorf("select category: %w", err)
	}
	return category, nil
}

// Categories implements [db.DB].
func (d *DB) Categories(ctx context.Context, q db.CategoryQuery) ([]animalstore.Category, error) {
	// Every int64 is an id, so the list starts at the lowest, not above it.
	query, from := "SELECT id, name FROM categories WHERE id >= ? ORDER BY id LIMIT +?", int64(math.MinInt64)
	if q.After != nil {
		query, from = "SELECT id, name FROM categories WHERE id > ? ORDER BY id LIMIT +?", *q.After
	}
	categories := []animalstore.Category{}
	err := d.readOwn(ctx, func(c *sqlite.Conn) error {
		err := sqlitex.Execute(c, query, &sqlitex.ExecOptions{
			Args: []any{from, q.Limit},
			ResultFunc: func(stmt *sqlite.Stmt) error {
				categories = append(categories, animalstore.Category{ID: stmt.ColumnInt64(0), Name: stmt.ColumnText(1)})
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
	err = d.writer.do(ctx, func(c *sqlite.Conn) error {
		before, err := selectCategory(c, category.ID)
		if err != nil {
			return err
		}
		if err := check(before); err != nil {
			return err
		}
		created = before == nil
		err = sqlitex.Execute(c, "INSERT INTO categories (id, name) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET name = excluded.name",
			&sqlitex.ExecOptions{Args: []any{category.ID, category.Name}})
		if err != nil {
			return fmt.Errorf("put category: %w", err)
		}
		return nil
	})
	return created, err
}
