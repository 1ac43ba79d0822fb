//go:build unix

package postgres

import (
	"context"
	"errors"
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

// TestOlderVersionsAreRefused: a server of a version without events can't change anything
// once the tables are updated, but still reads.
func TestOlderVersionsAreRefused(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	url := server.NewDatabase(t, "")
	d := mustOpen(t, url, Options{Timeout: patient})
	mustCreate(t, d, "kept")
	old, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close(context.WithoutCancel(t.Context()))
	for _, statement := range []string{
		"WITH category AS (INSERT INTO categories (id, name) VALUES (2, '') ON CONFLICT DO NOTHING) INSERT INTO pets (name, category_id, status) VALUES ('x', 2, 0)",
		"UPDATE pets SET name = 'x'", "DELETE FROM pets", "UPDATE categories SET name = 'x'",
		"INSERT INTO orders (pet_id, status, created_at, updated_at) VALUES (1, 0, 1, 1)", "UPDATE orders SET status = 3",
		"INSERT INTO keys (name, plan, per_minute, per_day, permissions, environment, created_at, expires_at, last_used, revoked_at, unbanned_at) VALUES ('x', 'free', 1, 1, 1, 'production', 1, 0, 0, 0, 0)",
		"UPDATE keys SET revoked_at = 1", "UPDATE key_secrets SET expires_at = 1", "DELETE FROM limit_states",
	} {
		_, err := old.Exec(t.Context(), statement)
		if !hasCode(err, readOnlyTransaction) || !strings.Contains(err.Error(), "newer animalstore") {
			t.Errorf("%s: %v, want a refusal that names the newer version", statement, err)
		}
		if !errors.Is(failed("x", err), db.ErrUnavailable) {
			t.Errorf("%s: an older server would report %v, want ErrUnavailable", statement, failed("x", err))
		}
	}
	var name string
	if err := old.QueryRow(t.Context(), "SELECT name FROM pets WHERE id = 1").Scan(&name); err != nil || name != "kept" {
		t.Errorf("read: %q, %v", name, err)
	}
}

// TestOpenUpdatesOldDatabase: a database of the version before is updated in place, with
// all it contains.
func TestOpenUpdatesOldDatabase(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	url := server.NewDatabase(t, "")
	old, err := migrations.ReadFile("migrations/00001_store.sql")
	if err != nil {
		t.Fatal(err)
	}
	server.MustExec(t, pgtest.Name(url), string(old)+`;
		CREATE TABLE `+versionTable+` (id int GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, version_id bigint NOT NULL, is_applied boolean NOT NULL, tstamp timestamp NOT NULL DEFAULT now());
		INSERT INTO `+versionTable+` (version_id, is_applied) VALUES (0, true), (1, true);
		INSERT INTO categories VALUES (7, 'dogs');
		INSERT INTO pets (name, category_id, status) VALUES ('Rex', 7, 0);
		INSERT INTO keys (name, plan, per_minute, per_day, permissions, environment, created_at, expires_at, last_used, revoked_at, unbanned_at) VALUES ('shop', 'free', 60, 1000, 3, 'production', 1, 0, 0, 0, 0)`)
	d := mustOpen(t, url, Options{Timeout: patient})
	if pet, err := d.Pet(t.Context(), 1); err != nil || pet.Name != "Rex" {
		t.Errorf("Pet: %+v, %v", pet, err)
	}
	if key, err := d.Key(t.Context(), 1); err != nil || key.Name != "shop" {
		t.Errorf("Key: %+v, %v", key, err)
	}
	if _, newest, err := d.EventRange(t.Context()); err != nil || newest != 0 {
		t.Errorf("newest event %d, %v, want none", newest, err)
	}
	mustCreate(t, d, "new")
	if newest, err := d.PublishEvents(t.Context()); err != nil || newest != 2 {
		t.Errorf("newest event %d, %v, want 2", newest, err)
	}
}

// TestActorsOfOlderInstances: events as an instance of an earlier version queues them, where
// the service was not told apart from the command line.
func TestActorsOfOlderInstances(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	url := server.NewDatabase(t, "")
	d := mustOpen(t, url, Options{Timeout: patient})
	server.MustExec(t, pgtest.Name(url), `
		INSERT INTO event_queue (type, subject_id, created_at, key_id, request_id, data) VALUES (6, 2, 1000, 0, '', '{}'), (0, 3, 1000, 2, 'a', '{}'),
			(15, 1, 1000, 0, '', '{}'), (10, 2, 1000, 0, '', '{}'), (10, 2, 1000, 2, 'b', '{}')`)
	if newest, err := d.PublishEvents(t.Context()); err != nil || newest != 5 {
		t.Fatalf("PublishEvents = %d, %v, want 5", newest, err)
	}
	events, _, err := d.Events(t.Context(), db.EventQuery{Limit: 10})
	got := ""
	for _, e := range events {
		got += fmt.Sprintf("%s by %s\n", e.Type, e.Actor)
	}
	want := "key.created by command_line\npet.created by key\nwebhook.disabled by service\nkey.banned by service\nkey.banned by key\n"
	if err != nil || got != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}
