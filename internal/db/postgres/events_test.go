//go:build unix

package postgres

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/db/dbtest"
	"animalstore/internal/db/postgres/pgtest"
	"animalstore/internal/testenv"
)

// TestFollowersOnSeveralServers_Slow: writers and followers use different servers.
func TestFollowersOnSeveralServers_Slow(t *testing.T) {
	t.Parallel()
	for range testenv.Count(1, 200) {
		url := pgtest.Shared(t).NewDatabase(t, "")
		if err := dbtest.FollowWriters(t, 40, mustOpen(t, url, Options{Timeout: testenv.Deadline}), mustOpen(t, url, Options{Timeout: testenv.Deadline}), mustOpen(t, url, Options{Timeout: testenv.Deadline})); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLateCommits_Slow: an event is numbered when its change is committed, even if it was
// queued before others.
func TestLateCommits_Slow(t *testing.T) {
	t.Parallel()
	d := mustOpen(t, pgtest.Shared(t).NewDatabase(t, ""), Options{Timeout: testenv.Deadline})
	late, err := d.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer late.Rollback(context.WithoutCancel(t.Context()))
	var id int64
	pet := animalstore.Pet{Name: "late", CategoryID: 1, Status: animalstore.PetAvailable}
	if err := late.QueryRow(t.Context(), insertPet, insertPetArgs(newPet{pet: pet})...).Scan(&id); err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.CreatePet(t.Context(), animalstore.NewPet{Name: "early", CategoryID: 2}, nil); err != nil {
		t.Fatal(err)
	}
	follow := func(after int64) (names string, last int64) {
		t.Helper()
		mustPublish(t, d)
		events, last, err := d.Events(t.Context(), db.EventQuery{After: after, Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			names += fmt.Sprintf("%d %s\n", e.ID, e.Data)
		}
		return names, last
	}
	first, last := follow(0)
	if !strings.Contains(first, "early") || strings.Contains(first, "late") || last != 2 {
		t.Errorf("before the commit: got %s, last %d, want the early one's", first, last)
	}
	if err := late.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if second, last := follow(last); !strings.Contains(second, "late") || last != 4 {
		t.Errorf("after the commit: got %s, last %d, want the late one's", second, last)
	}
}
