package sqlite

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestCountsUseTheirIndex: a count reads only the entries of its range.
func TestCountsUseTheirIndex(t *testing.T) {
	d := mustOpen(t, filepath.Join(t.TempDir(), "store.db"), Options{Serve: true})
	const byCategory = "SEARCH pets USING COVERING INDEX pets_by_category (category_id=? AND status=? AND id>"
	for query, want := range map[string][]string{
		countPets: append(slices.Repeat([]string{"SEARCH pets USING COVERING INDEX pets_by_status (status=? AND id>? AND id<?)"}, 3),
			"SEARCH pets USING INTEGER PRIMARY KEY (rowid>?)"),
		countPetsOfCategory: append(slices.Repeat([]string{byCategory + "? AND id<?)"}, 3), slices.Repeat([]string{byCategory + "?)"}, 3)...),
	} {
		got := slices.DeleteFunc(plan(t, d, query), func(step string) bool {
			return !strings.HasPrefix(step, "SEARCH pets") && !strings.HasPrefix(step, "SCAN pets")
		})
		if !slices.Equal(got, want) {
			t.Errorf("%s\nreads %q\nwant  %q", query, got, want)
		}
	}
}
