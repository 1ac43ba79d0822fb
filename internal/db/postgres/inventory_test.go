//go:build unix

package postgres

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"animalstore/internal/db/postgres/pgtest"
)

// TestCountsCostByRange: a count reads no more than its range, with custom and with generic
// plans, and only the entries of its category once PostgreSQL has analysed the table.
func TestCountsCostByRange(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	url := server.NewDatabase(t, "")
	d := mustOpen(t, url, Options{Timeout: patient})
	// One pet in a thousand is in category 1, and the last of them is far from the others.
	server.MustExec(t, pgtest.Name(url), `INSERT INTO pets (folded_name, name, category_id, status)
		SELECT 'pet ' || n, 'pet ' || n, CASE WHEN n < 20000 AND n % 1000 = 0 OR n = 50000 THEN 1 ELSE 2 END, n % 3 FROM generate_series(1, 50000) n`)
	for _, analysed := range []bool{false, true} {
		if analysed {
			server.MustExec(t, pgtest.Name(url), "VACUUM ANALYZE")
		}
		for _, mode := range []string{"force_generic_plan", "force_custom_plan"} {
			for _, c := range []struct {
				query string
				args  []any
				want  []string
				size  int // of the range
				rows  int
				pages int
			}{
				{countPets, []any{10_001, 11_000}, []string{"pets_by_status", "pets_by_status", "pets_by_status", "pets_pkey"}, 1000, 1001, 25},
				{countPetsOfCategory, []any{1, 20_000, 1}, slices.Repeat([]string{"pets_by_category"}, 6), 20_000, 22, 40},
				{countPetsOfCategory, []any{1, 1000, 2}, slices.Repeat([]string{"pets_by_category"}, 6), 1000, 1002, 40},
			} {
				t.Run(fmt.Sprintf("%d arguments, %s, analysed %t", len(c.args), mode, analysed), func(t *testing.T) {
					var along []string
					rows := 0
					plan := planOf(t, d, mode, c.query, c.args)
					plan.walk(func(n planNode) {
						if strings.Contains(n.Type, "Scan") {
							along = append(along, n.Index)
							rows += int((n.Rows + n.Removed + n.Recheck) * n.Loops)
						}
					})
					slices.Sort(along)
					touched := plan.Hit + plan.Read
					if !analysed {
						if rows > c.size+3 {
							t.Errorf("it read %d rows along %q, want at most %d", rows, along, c.size+3)
						}
					} else if !slices.Equal(along, c.want) || rows > c.rows || touched > c.pages {
						t.Errorf("it read %d rows and %d pages along %q, want at most %d and %d along %q", rows, touched, along, c.rows, c.pages, c.want)
					}
				})
			}
		}
	}
}
