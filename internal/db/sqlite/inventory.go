package sqlite

import (
	"context"
	"fmt"
	"strings"

	"animalstore"
	"animalstore/internal/db"

	"zombiezen.com/go/sqlite"
)

// Parameters of a count: ?1 is the first id of the range, ?2 the last, ?3 the category. The
// columns are the counts by status, in the order of their stored values, and the next id.
var (
	countPets           = countStatuses("") + ", coalesce((SELECT min(id) FROM pets WHERE id > ?2), 0)"
	countPetsOfCategory = countStatuses("category_id = ?3 AND ") + ", coalesce((SELECT min(id) FROM (" +
		forStatuses("SELECT min(id) AS id FROM pets WHERE category_id = ?3 AND status = %d AND id > ?2", " UNION ALL ") + ")), 0)"
)

func countStatuses(condition string) string {
	return "SELECT " + forStatuses("(SELECT count(*) FROM pets WHERE "+condition+"status = %d AND id BETWEEN ?1 AND ?2)", ", ")
}

// forStatuses repeats a part of a query for each status.
func forStatuses(part, separator string) string {
	parts := make([]string, len(animalstore.PetStatuses))
	for status := range parts {
		parts[status] = fmt.Sprintf(part, status)
	}
	return strings.Join(parts, separator)
}

// CountPets implements [db.DB].
func (d *DB) CountPets(ctx context.Context, q db.CountQuery) (counted animalstore.Inventory, next int64, err error) {
	query, args := countPets, []any{q.From, q.Last()}
	if q.CategoryID != nil {
		query, args = countPetsOfCategory, append(args, *q.CategoryID)
	}
	err = d.read(ctx, func(c *sqlite.Conn) error {
		return selectEach(c, "count pets", func(stmt *sqlite.Stmt) error {
			counted = animalstore.Inventory{Available: stmt.ColumnInt64(0), Pending: stmt.ColumnInt64(1), Sold: stmt.ColumnInt64(2)}
			next = stmt.ColumnInt64(3)
			return nil
		}, query, args...)
	})
	return counted, next, err
}
