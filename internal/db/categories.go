package db

import (
	"context"

	"animalstore"
)

// Categories stores the categories of pets.
type Categories interface {
	// Category returns one category.
	Category(ctx context.Context, id int64) (animalstore.Category, error)

	// Categories returns categories in ascending order of id.
	Categories(ctx context.Context, q CategoryQuery) ([]animalstore.Category, error)

	// PutCategory creates or renames a category if check returns nil. before is the
	// stored category, or nil if there is none.
	PutCategory(ctx context.Context, c animalstore.Category, check func(before *animalstore.Category) error) (created bool, err error)
}

// CategoryQuery selects categories. A nil After doesn't restrict the result.
type CategoryQuery struct {
	After *int64 // only higher ids
	Limit int    // at least 1
}

// ScanCategory scans the id and the name of a category.
func ScanCategory(row Row) (animalstore.Category, error) {
	var c animalstore.Category
	err := row.Scan(&c.ID, &c.Name)
	return c, err
}
