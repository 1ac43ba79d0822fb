package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"animalstore/internal/testenv"
)

// TestKill repeatedly kills the server under load, on one file. Everything it
// acknowledged must be stored afterwards, and no id may be used twice.
func TestKill(t *testing.T) {
	t.Parallel()
	rounds := testenv.Count(2, 1000)
	database := newDatabase(t)
	key := adminKey(t, database)
	acknowledged := newLedger()
	verified := int64(0) // the highest id up to which everything was verified
	for round := range rounds {
		s := start(t, onDatabase(database))
		l := startLoad(t, s, key, 32, fmt.Sprint("round ", round), 50)
		// Loads of different lengths hit different states of the log.
		enough := int64(1 + round%4*500)
		testenv.Eventually(t, "the load is on", func() bool { return l.acknowledged.Load() >= enough })
		s.kill()
		fresh := l.stop()
		if refused := l.refusals(); len(refused) > 0 {
			t.Errorf("round %d: got refusals %v, want none", round, refused)
		}
		highest := verified
		for _, p := range fresh {
			if err := acknowledged.add(p); err != nil {
				t.Errorf("round %d: %v", round, err)
			}
			highest = max(highest, p.ID)
		}
		if got := integrity(t, database); got != "ok" {
			t.Fatalf("round %d: the file is damaged: %s", round, got)
		}
		wantEvents(t, database)
		s = start(t, onDatabase(database))
		if n, which := acknowledged.missing(newClient(t, s, key).allPets(t, verified), verified); n > 0 {
			t.Fatalf("round %d: %d of %d acknowledged pets are lost or changed, such as %q", round, n, len(fresh), which)
		}
		verified = highest
		s.kill() // a start that is killed at once must do no harm either
	}
	// Finally, check everything from all rounds.
	s := start(t, onDatabase(database))
	stored := newClient(t, s, key).allPets(t, 0)
	if n, which := acknowledged.missing(stored, 0); n > 0 {
		t.Errorf("%d acknowledged pets are lost or changed in the end, such as %q", n, which)
	}
	s.stop()
	if got := integrity(t, database); got != "ok" {
		t.Errorf("the file is damaged: %s", got)
	}
}

// integrity returns SQLite's verdict on the file of a stopped server. It checks a copy,
// so that the next server has to recover the file itself.
func integrity(t *testing.T, database string) string {
	t.Helper()
	return strings.Join(onCopy(t, database, "PRAGMA integrity_check"), "; ")
}

// onCopy runs SQL on a copy of a file, and returns the first column of its rows.
func onCopy(t *testing.T, database, sql string) []string {
	t.Helper()
	dir, err := os.MkdirTemp(t.TempDir(), "copy") // removed at once: a soak creates a thousand
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	copied := filepath.Join(dir, "copy.db")
	for _, suffix := range []string{"", "-wal"} {
		copyInto(t, database+suffix, copied+suffix)
	}
	return query(t, copied, sql)
}

// withoutEvents selects rows without their event, and events without their row, in a
// file where pets were only added.
const withoutEvents = `
	SELECT 'pet ' || p.id || ' has no event' FROM pets p LEFT JOIN events e ON e.type = 0 AND e.subject_id = p.id
		WHERE e.id IS NULL OR json_extract(e.data, '$.name') <> p.name UNION ALL
	SELECT 'event ' || e.id || ' is of a pet that was not stored' FROM events e LEFT JOIN pets p ON p.id = e.subject_id
		WHERE e.type = 0 AND p.id IS NULL UNION ALL
	SELECT 'category ' || c.id || ' has no event' FROM categories c LEFT JOIN events e ON e.type = 5 AND e.subject_id = c.id
		WHERE e.id IS NULL UNION ALL
	SELECT 'events ' || min(id) || ' to ' || max(id) || ' are ' || count(*) FROM events HAVING min(id) <> 1 OR max(id) <> count(*)`

// wantEvents checks that every change in the file of a stopped server has its event, and every
// event its change.
func wantEvents(t *testing.T, database string) {
	t.Helper()
	for _, wrong := range onCopy(t, database, withoutEvents) {
		t.Fatal(wrong)
	}
}
