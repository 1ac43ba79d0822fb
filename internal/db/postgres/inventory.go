package postgres

import (
	"context"
	"fmt"
	"strings"

	"animalstore"
	"animalstore/internal/db"

	"github.com/jackc/pgx/v5"
)

// Parameters of a count: $1 is the first id of the range, $2 the last, $3 the category. The
// columns are the counts by status, in the order of their stored values, and the next id.
// The next id of a category is found as in a list, by comparing all columns of an index.
// Counts don't do that: PostgreSQL wouldn't stop where such a comparison ends, and would read
// to the end of the status.
var (
	countPets = "SELECT " + forStatuses("(SELECT count(*) FROM pets WHERE status = %d AND id BETWEEN $1 AND $2)") +
		", coalesce((SELECT min(id) FROM pets WHERE id > $2), 0)"
	countPetsOfCategory = "SELECT " + forStatuses("(SELECT count(*) FROM pets WHERE category_id = $3 AND status = %d AND id BETWEEN $1 AND $2)") +
		", coalesce(least(" + forStatuses(`(SELECT id FROM pets WHERE (category_id, status, id) > ($3, %[1]d, $2) AND (category_id, status) <= ($3, %[1]d)
			ORDER BY category_id, status, id LIMIT 1)`) + "), 0)"
)

// forStatuses lists a part of a query for each status.
func forStatuses(part string) string {
	parts := make([]string, len(animalstore.PetStatuses))
	for status := range parts {
		parts[status] = fmt.Sprintf(part, status)
	}
	return strings.Join(parts, ", ")
}

// countedRange is a result of [DB.CountPets].
type countedRange struct {
	animalstore.Inventory
	next int64
}

// CountPets implements [db.DB].
func (d *DB) CountPets(ctx context.Context, q db.CountQuery) (counted animalstore.Inventory, next int64, err error) {
	query, args := countPets, []any{q.From, q.Last()}
	if q.CategoryID != nil {
		query, args = countPetsOfCategory, append(args, *q.CategoryID)
	}
	result, err := readOne(ctx, d, "count pets", func(row pgx.Row) (r countedRange, err error) {
		err = row.Scan(&r.Available, &r.Pending, &r.Sold, &r.next)
		return r, err
	}, query, args...)
	return result.Inventory, result.next, err
}
