package sqlite

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"animalstore"
	"animalstore/internal/db"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitemigration"
)

// oldStore creates a store as an older version left it: with the tables of its version and
// a few rows.
func oldStore(t *testing.T, version int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "store.db")
	createTables(t, path, version)
	script(t, path, `
		INSERT INTO categories VALUES (7, 'dogs');
		INSERT INTO pets (id, name, category_id, status) VALUES (1, 'Rex', 7, 1), (3, 'Zoë', 7, 0);
		INSERT INTO orders VALUES (5, 1, 0, 1000, 1000);
		INSERT INTO keys VALUES (2, 'shop', 'free', 60, 1000, 3, 'production', 1000, 0, 0, 0, 0);
		INSERT INTO key_secrets VALUES (zeroblob(32), 2, 0);
		INSERT INTO usage VALUES (2, 0, 1, 0);
		INSERT INTO limit_states VALUES (2, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11);
		INSERT INTO answers VALUES (2, 'createPet', 'a', zeroblob(32), '{}', 1000);`)
	return path
}

// createTables creates the tables of an older version, or updates older ones to it.
func createTables(t *testing.T, path string, version int) {
	t.Helper()
	conn, err := sqlite.OpenConn(path)
	if err != nil {
		t.Fatal(err)
	}
	old := sqlitemigration.Schema{AppID: schema.AppID, Migrations: schema.Migrations[:version]}
	if err := sqlitemigration.Migrate(t.Context(), conn, old); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
}

// wantOldStore checks that a store has what oldStore put there, and that it works.
func wantOldStore(t *testing.T, d *DB) {
	t.Helper()
	pets, err := d.Pets(t.Context(), db.PetQuery{Limit: 10})
	if err != nil || fmt.Sprint(pets) != "[{3 Zoë 7 available} {1 Rex 7 pending}]" {
		t.Errorf("got pets %v, %v", pets, err)
	}
	if order, err := d.Order(t.Context(), 5); err != nil || order.PetID != 1 || order.Status != animalstore.OrderPlaced {
		t.Errorf("got order %+v, %v", order, err)
	}
	if c, err := d.Category(t.Context(), 7); err != nil || c.Name != "dogs" {
		t.Errorf("got category %+v, %v", c, err)
	}
	if key, found, err := d.KeyByHash(t.Context(), db.KeyHash{}); err != nil || !found || key.ID != 2 || key.Name != "shop" {
		t.Errorf("got key %+v, %t, %v", key, found, err)
	}
	if s, err := d.LimitState(t.Context(), 2); err != nil || s.BanLevel != 11 {
		t.Errorf("got limits %+v, %v", s, err)
	}
	if first, newest, err := d.EventRange(t.Context()); err != nil || first != 0 || newest != 0 {
		t.Errorf("got events %d to %d, %v, want none", first, newest, err)
	}
	if pet, _, err := d.CreatePet(t.Context(), animalstore.NewPet{Name: "new", CategoryID: 7}, nil); err != nil || pet.ID != 4 {
		t.Errorf("CreatePet: %+v, %v, want id 4", pet, err)
	}
	if newest, err := d.PublishEvents(t.Context()); err != nil || newest != 1 {
		t.Errorf("got newest event %d, %v, want 1", newest, err)
	}
}

// TestOpenUpdatesOldStores: a store of any older version is updated in place.
func TestOpenUpdatesOldStores(t *testing.T) {
	for version := 1; version < len(schema.Migrations); version++ {
		for name, opts := range map[string]Options{"server": {Serve: true}, "command": {MustExist: true}} {
			t.Run(fmt.Sprintf("version %d, %s", version, name), func(t *testing.T) {
				path := oldStore(t, version)
				wantOldStore(t, mustOpen(t, path, opts))
				if have, known, err := Versions(path); err != nil || have != known {
					t.Errorf("Versions = %d, %d, %v", have, known, err)
				}
			})
		}
	}
}

// TestUpdateDropsLeases: what an earlier version stored as claimed is due after the update,
// and everything else about the delivery stays.
func TestUpdateDropsLeases(t *testing.T) {
	path := oldStore(t, 5)
	script(t, path, `
		INSERT INTO webhooks VALUES (1, 'https://example.com', 'pet.*', '', 0, '', 'whsec_b25l', '', 0, 1000, 0, 0, 0, 0, 0);
		INSERT INTO deliveries VALUES (4, 1, 9, 0, 1000, '{"id":9}', 0, 2, '[]', 2000, 1 << 60, 1000)`)
	d := mustOpen(t, path, Options{Serve: true})
	due, err := d.ClaimDeliveries(t.Context(), animalstore.AtMilli(3000), animalstore.AtMilli(4000))
	if err != nil || len(due) != 1 || due[0].ID != 4 || due[0].EventID != 9 || due[0].Tries != 2 || string(due[0].Data) != `{"id":9}` {
		t.Errorf("claimed %+v, %v, want delivery 4 as it was stored", due, err)
	}
}

// TestActorsOfOldEvents: events that earlier versions stored, where the service was not
// told apart from the command line.
func TestActorsOfOldEvents(t *testing.T) {
	path := oldStore(t, 6)
	script(t, path, `
		INSERT INTO events VALUES (1, 6, 2, 1000, 0, '', '{}'), (2, 0, 3, 1000, 2, 'a', '{}'), (3, 15, 1, 1000, 0, '', '{}'),
			(4, 10, 2, 1000, 0, '', '{}'), (5, 10, 2, 1000, 2, 'b', '{}')`)
	d := mustOpen(t, path, Options{Serve: true})
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

// TestOldServerKeepsItsTables: a newer command doesn't update the tables of a running
// server of an older version, which would add no events. It works as soon as that ends.
func TestOldServerKeepsItsTables(t *testing.T) {
	t.Parallel() // it waits
	path := oldStore(t, 1)
	old, err := lockServer(path) // what a running server holds
	if err != nil {
		t.Fatal(err)
	}
	wantRefused(t, path, Options{MustExist: true}, "an older animalstore serves this file")
	if have, _, err := Versions(path); err != nil || have != 1 {
		t.Errorf("the tables are at version %d, %v, want 1", have, err)
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	wantOldStore(t, mustOpen(t, path, Options{MustExist: true}))
}

// TestCommandsUpdateAtOnce: of commands that start together after an update of the
// program, none fails, except that a slow disk may make some of them try again.
func TestCommandsUpdateAtOnce(t *testing.T) {
	path := oldStore(t, 1)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			start := time.Now()
			d, err := Open(t.Context(), path, Options{MustExist: true})
			for err != nil && strings.Contains(err.Error(), "Try again when it has finished") && time.Since(start) < time.Minute {
				d, err = Open(t.Context(), path, Options{MustExist: true})
			}
			if err != nil {
				t.Error(err)
				return
			}
			defer d.Close()
			if _, err := d.Key(t.Context(), 2); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// TestCommandWaitsForAnUpdate: a command that meets another process while that updates
// the tables waits until they are updated, whether the other one serves the file
// afterwards or ends.
func TestCommandWaitsForAnUpdate(t *testing.T) {
	for name, serves := range map[string]bool{"a server updates": true, "a command updates": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				path := oldStore(t, 1)
				lock, err := lockServer(path)
				if err != nil {
					t.Fatal(err)
				}
				defer lock.Close()
				updated := make(chan error, 1)
				go func() { updated <- (&DB{path: path}).updateTables(t.Context(), nil) }()
				for _, version := range []int{2, 3} {
					time.Sleep((updateAttempts - 1) * updateEvery) // so long a step may take
					createTables(t, path, version)
				}
				time.Sleep((updateAttempts - 1) * updateEvery)
				if err := (&DB{path: path}).migrate(t.Context(), nil); err != nil {
					t.Fatal(err)
				}
				if !serves {
					lock.Close()
				}
				if err := <-updated; err != nil {
					t.Errorf("got %v, want the command to go on", err)
				}
			})
		})
	}
}
