package sqlite

import (
	"path/filepath"
	"slices"
	"testing"
)

// TestEventsUseTheirIndex: a page of events, all or those of one resource, is read from
// its first row to its last, without sorting.
func TestEventsUseTheirIndex(t *testing.T) {
	d := mustOpen(t, filepath.Join(t.TempDir(), "store.db"), Options{Serve: true})
	for query, want := range map[string]string{
		listEvents:          "SEARCH events USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)",
		listEventsBySubject: "SEARCH events USING INDEX events_by_subject (subject_id=? AND rowid>? AND rowid<?)",
	} {
		if got := plan(t, d, query); !slices.Equal(got, []string{want}) {
			t.Errorf("%s\nreads %q\nwant  %q", query, got, want)
		}
	}
}
