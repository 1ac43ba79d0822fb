package sqlite

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestCountsUseTheirIndex: a count reads an index alone, and only the entries of its
// category.
func TestCountsUseTheirIndex(t *testing.T) {
	d := mustOpen(t, filepath.Join(t.TempDir(), "store.db"), Options{Serve: true})
	for query, each := range map[string]string{
		countPets:           "SEARCH pets USING COVERING INDEX pets_by_status (status=?)",
		countPetsOfCategory: "SEARCH pets USING COVERING INDEX pets_by_category (category_id=? AND status=?)",
	} {
		got := slices.DeleteFunc(plan(t, d, query), func(step string) bool { return !strings.Contains(step, " pets") })
		if want := slices.Repeat([]string{each}, 3); !slices.Equal(got, want) {
			t.Errorf("%s\nreads %q\nwant  %q", query, got, want)
		}
	}
}
