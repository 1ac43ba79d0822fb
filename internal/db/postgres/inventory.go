package postgres

import (
	"context"

	"animalstore"

	"github.com/jackc/pgx/v5"
)

const (
	countPets = `SELECT count(*) FILTER (WHERE status = 0), count(*) FILTER (WHERE status = 1), count(*) FILTER (WHERE status = 2)
		FROM pets`
	countPetsOfCategory = countPets + " WHERE category_id = $1"
)

// CountPets implements [db.DB].
func (d *DB) CountPets(ctx context.Context, categoryID *int64) (animalstore.Inventory, error) {
	query, args := countPets, []any(nil)
	if categoryID != nil {
		query, args = countPetsOfCategory, []any{*categoryID}
	}
	return readOne(ctx, d, "count pets", func(row pgx.Row) (counted animalstore.Inventory, err error) {
		err = row.Scan(&counted.Available, &counted.Pending, &counted.Sold)
		return counted, err
	}, query, args...)
}
