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

	"github.com/jackc/pgx/v5"
)

// TestFollowersOnSeveralServers: writers and followers use different servers.
func TestFollowersOnSeveralServers(t *testing.T) {
	t.Parallel()
	for range testenv.Count(1, 200) {
		url := pgtest.Shared(t).NewDatabase(t, "")
		if err := dbtest.FollowWriters(t, 40, mustOpen(t, url, Options{Timeout: patient}), mustOpen(t, url, Options{Timeout: patient}), mustOpen(t, url, Options{Timeout: patient})); err != nil {
			t.Fatal(err)
		}
	}
}

// naive is a store whose followers read the queue itself, by the numbers of its
// sequence.
type naive struct{ *DB }

func (n naive) PublishEvents(ctx context.Context) (newest int64, err error) {
	err = n.pool.QueryRow(ctx, "SELECT coalesce(max(seq), 0) FROM event_queue").Scan(&newest)
	return newest, err
}

func (n naive) Events(ctx context.Context, q db.EventQuery) (events []animalstore.Event, last int64, err error) {
	rows, err := n.pool.Query(ctx, "SELECT seq, "+eventColumns+" FROM event_queue WHERE seq > $1 ORDER BY seq LIMIT $2", q.After, q.Limit)
	if err != nil {
		return nil, 0, err
	}
	events, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (animalstore.Event, error) {
		var s db.StoredEvent
		err := row.Scan(&s.ID, &s.Type, &s.SubjectID, &s.Time, &s.KeyID, &s.RequestID, &s.Data)
		return s.Event(), err
	})
	last = q.After
	if len(events) > 0 {
		last = events[len(events)-1].ID
	}
	return events, last, err
}

// TestSequencesSkipEvents shows why events are numbered after their commits: followers
// of the queue's sequence miss some. The same test as above then fails.
func TestSequencesSkipEvents(t *testing.T) {
	t.Parallel()
	for range 50 {
		url := pgtest.Shared(t).NewDatabase(t, "")
		err := dbtest.FollowWriters(t, 40, naive{mustOpen(t, url, Options{Timeout: patient})})
		if err != nil && strings.Contains(err.Error(), "differ from all") {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Error("no follower missed an event")
}

// TestLateCommits: an event is numbered when its change is committed, even if it was
// queued before others.
func TestLateCommits(t *testing.T) {
	t.Parallel()
	d := mustOpen(t, pgtest.Shared(t).NewDatabase(t, ""), Options{Timeout: patient})
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
		if _, err := d.PublishEvents(t.Context()); err != nil {
			t.Fatal(err)
		}
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
