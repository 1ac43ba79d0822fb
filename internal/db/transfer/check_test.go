//go:build unix

package transfer_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"animalstore/internal/db"
	"animalstore/internal/db/postgres/pgtest"
	"animalstore/internal/db/transfer"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// damages each break one rule, with statements that work in both engines once the
// constraints are gone. The finding names a row.
var damages = []struct{ rule, statements, names string }{
	{"every pet has a known status", "UPDATE pets SET status = 3 WHERE id = 7", "pet 7"},
	{"every order has a known status", "UPDATE orders SET status = 9 WHERE id = 4", "order 4"},
	{"every pet, photo, order and key has a positive id", "UPDATE pets SET id = -7 WHERE id = 7", "pet -7"},
	{"every pet, photo, order and key has a positive id", "UPDATE orders SET id = 0 WHERE id = 4", "order 0"},
	{"every pet, photo, order and key has a positive id", "UPDATE keys SET id = -4 WHERE id = 4", "key -4"},
	{"every photo belongs to a pet, which has no more than it may", "UPDATE photos SET pet_id = 900 WHERE id = 1", "photo 1"},
	{"every photo has all bytes of its images", "DELETE FROM photo_parts WHERE photo_id = 2 AND kind = 1", "photo 2"},
	{"every photo has all bytes of its images", "DELETE FROM photo_parts WHERE photo_id = 2 AND kind = 0", "photo 2"},
	{"every photo has all bytes of its images", "UPDATE photo_parts SET part = 7 WHERE photo_id = 2 AND part = 1", "photo 2"},
	{"every part of an image belongs to a photo", "DELETE FROM photos WHERE id = 2", "photo 2"},
	{"the size of all photos is known", "UPDATE photo_total SET bytes = 4711", "4711"},
	{"every pet has a name", "UPDATE pets SET name = '' WHERE id = 9", "pet 9"},
	{"every pet can be found by its name", "DELETE FROM name_entries WHERE pet_id = 8", "pet 8"},
	{"every entry of a name is one of its pet's name", "UPDATE name_entries SET entry = 'x' WHERE pet_id = 7", "an entry of pet 7"},
	{"every entry of a name is one of its pet's name", "UPDATE name_entries SET shared = 7 WHERE pet_id = 6", "an entry of pet 6"},
	{"every entry of a name is one of its pet's name", "INSERT INTO name_entries VALUES ('x', 4712, 0)", "an entry of pet 4712"},
	{"every pet's category exists", "DELETE FROM categories WHERE id = 0", "pet 8"},
	{"a pet with an open order exists and is pending", "UPDATE pets SET status = 0 WHERE id = 1", "pet 1"},
	{"a pet with an open order exists and is pending", "DELETE FROM pets WHERE id = 2", "pet 2"},
	{"a pet has at most one open order", "INSERT INTO orders (id, pet_id, status, reference, note, created_at, updated_at) VALUES (1900, 1, 0, '', '', 1, 1)", "pet 1"},
	{"a pet that was delivered is sold or gone", "UPDATE pets SET status = 0 WHERE id = 3", "pet 3"},
	{"every key has a known plan and environment, limits and permissions", "UPDATE keys SET plan = 'gold' WHERE id = 2", "key 2"},
	{"every key has a known plan and environment, limits and permissions", "UPDATE keys SET environment = '' WHERE id = 2", "key 2"},
	{"every key has a known plan and environment, limits and permissions", "UPDATE keys SET per_minute = 0 WHERE id = 2", "key 2"},
	{"every key has a known plan and environment, limits and permissions", "UPDATE keys SET per_day = -1 WHERE id = 2", "key 2"},
	{"every key has a known plan and environment, limits and permissions", "UPDATE keys SET permissions = 128 WHERE id = 2", "key 2"},
	{"every key has valid networks", "UPDATE keys SET networks = '203.0.113.7/24' WHERE id = 2", "key 2"},
	{"every key has valid networks", "UPDATE keys SET networks = '203.0.113.7' WHERE id = 2", "key 2"},
	{"every secret, usage and limit belongs to a key", "UPDATE key_secrets SET key_id = 50 WHERE key_id = 3", "key 50"},
	{"every secret, usage and limit belongs to a key", "UPDATE usage SET key_id = 50 WHERE key_id = 2", "key 50"},
	{"every secret, usage and limit belongs to a key", "UPDATE limit_states SET key_id = 50 WHERE key_id = 2", "key 50"},
	{"every hash has 32 bytes", "UPDATE key_secrets SET hash = substr(hash, 1, 31) WHERE key_id = 1", "key 1"},
	{"every hash has 32 bytes", "UPDATE idempotency_records SET body_hash = substr(body_hash, 2) WHERE token = 'a'", "key 1"},
	{"every idempotency record has its result", "UPDATE idempotency_records SET result = '' WHERE token = 'a'", "key 1"},
	{"every event has a known type", "UPDATE events SET type = 18 WHERE id = 2", "event 2"},
	{"every event has a known actor", "UPDATE events SET key_id = -2 WHERE id = 2", "event 2"},
	{"every webhook has a known state, an address and secrets", "UPDATE webhooks SET state = 3 WHERE id = 2", "webhook 2"},
	{"every webhook has a known state, an address and secrets", "UPDATE webhooks SET url = '' WHERE id = 1", "webhook 1"},
	{"every webhook has a known state, an address and secrets", "UPDATE webhooks SET types = '' WHERE id = 1", "webhook 1"},
	{"every webhook has a known state, an address and secrets", "UPDATE webhooks SET secret = 'whsec_' WHERE id = 1", "webhook 1"},
	{"every webhook has a known state, an address and secrets", "UPDATE webhooks SET old_secret = 'x' WHERE id = 1", "webhook 1"},
	{"every delivery has a known state and type", "UPDATE deliveries SET state = 3 WHERE id = 1", "delivery 1"},
	{"every delivery has a known state and type", "UPDATE deliveries SET type = 18 WHERE id = 1", "delivery 1"},
	{"every delivery has a known state and type", "UPDATE deliveries SET event_id = 3, type = -1 WHERE id = 1", "delivery 1"},
	{"every event shows its resource", "UPDATE events SET subject_id = 900 WHERE id = 3", "event 3"},
	{"every event shows its resource", "UPDATE events SET data = '' WHERE id = 4", "event 4"},
	{"every event is listed with its pet", "UPDATE events SET pet_id = 900 WHERE id = 1", "event 1"},
	{"no event is missing", "DELETE FROM events WHERE id = 5", ""},
}

// findings is a [transfer.CheckProgress] that collects failed checks.
type findings []transfer.Finding

func (f *findings) Checking(string) {}

func (f *findings) Checked(found transfer.Finding) {
	if !found.OK() {
		*f = append(*f, found)
	}
}

// checkStore runs every check and returns the failed ones.
func checkStore(t *testing.T, url string) (wrong findings) {
	t.Helper()
	source := openSource(t, url, false)
	defer source.Close()
	ran, failed, err := transfer.Check(t.Context(), source, &wrong)
	if err != nil {
		t.Fatal(err)
	}
	if want := len(transfer.Checks) + len(source.Checks()); ran != want || failed != len(wrong) {
		t.Errorf("ran %d checks of which %d failed, want %d and %d", ran, failed, want, len(wrong))
	}
	return wrong
}

// wantWrong fails the test unless a check found the damage.
func wantWrong(t *testing.T, url, rule, names string) {
	t.Helper()
	wrong := checkStore(t, url)
	if !slices.ContainsFunc(wrong, func(f transfer.Finding) bool {
		return f.Rule == rule && strings.Contains(fmt.Sprint(f.Examples, f.Err), names)
	}) {
		t.Errorf("got %+v, want a finding for %q that names %q", wrong, rule, names)
	}
}

func wantSound(t *testing.T, url string) {
	t.Helper()
	if wrong := checkStore(t, url); wrong != nil {
		t.Fatalf("a consistent store: got %+v, want nothing wrong", wrong)
	}
}

// TestCheckStops: a check that can't continue returns an error and blames no rule.
func TestCheckStops(t *testing.T) {
	url := newStore(t)
	withStore(t, url, func(db.DB) {})
	source := openSource(t, url, false)
	defer source.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var wrong findings
	if _, failed, err := transfer.Check(ctx, source, &wrong); !errors.Is(err, context.Canceled) || failed != 0 || wrong != nil {
		t.Errorf("got %d failed, %v, findings %+v, want context.Canceled", failed, err, wrong)
	}
}

// copyStore copies a SQLite file that isn't open.
func copyStore(t *testing.T, url string) (path string) {
	t.Helper()
	data, err := os.ReadFile(strings.TrimPrefix(url, "sqlite:"))
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "copy.db")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCheckFindsDamageInSQLite(t *testing.T) {
	t.Parallel()
	sound := "sqlite:" + filepath.Join(t.TempDir(), "store.db")
	withStore(t, sound, func(store db.DB) { oddStore(t, store) })
	wantSound(t, sound)
	damaged := func(statements string) string {
		path := copyStore(t, sound)
		conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		script := "PRAGMA ignore_check_constraints = ON; DROP INDEX orders_open; " + statements + ";"
		if err := sqlitex.ExecuteScript(conn, script, nil); err != nil {
			t.Fatalf("%s: %v", statements, err)
		}
		return "sqlite:" + path
	}
	if wrong := checkStore(t, damaged("UPDATE pets SET category_id = 55 WHERE id <= 8")); len(wrong) != 1 || wrong[0].Violations != 7 || len(wrong[0].Examples) != 5 {
		t.Errorf("got %+v, want one finding with 7 violations and 5 examples", wrong)
	}
	for _, d := range damages {
		wantWrong(t, damaged(d.statements), d.rule, d.names)
	}
	wantWrong(t, damaged(`UPDATE events SET data = '{"id":' || subject_id || ',}' WHERE id = 6`), "the data of every event is valid JSON", "event 6")
	wantWrong(t, damaged("UPDATE usage SET key_id = 50 WHERE key_id = 2"), "every reference points to a row", "usage")
	wantWrong(t, damaged("UPDATE sqlite_sequence SET seq = 10 WHERE name = 'pets'"), "no id is assigned twice", "pets")
	wantWrong(t, damaged("DELETE FROM sqlite_sequence WHERE name = 'orders'"), "no id is assigned twice", "orders")
	wantWrong(t, damaged("UPDATE sqlite_sequence SET seq = 3 WHERE name = 'keys'"), "no id is assigned twice", "keys")
	wantWrong(t, damaged("PRAGMA writable_schema = ON; UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 'idempotency_records_by_age') WHERE name = 'usage_by_hour'"),
		"the file is intact", "")
	// With an overwritten page, some checks can't even read.
	path := copyStore(t, sound)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := strings.Index(string(data), `DROP TABLE pets`) // a pet's name
	copy(data[at&^4095:], strings.Repeat("\xff", 64))
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	wantWrong(t, "sqlite:"+path, "the file is intact", "")
}

func TestCheckFindsDamageInPostgreSQL_Slow(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	sound := server.NewDatabase(t, "")
	withStore(t, sound, func(store db.DB) {
		oddStore(t, store)
		wantSound(t, sound) // with events that have no numbers yet
		if newest, err := store.PublishEvents(t.Context()); err != nil || newest < 10 {
			t.Fatalf("PublishEvents = %d, %v, want some events", newest, err)
		}
	})
	wantSound(t, sound)
	server.MustExec(t, pgtest.Name(sound), `DROP INDEX orders_open;
		ALTER TABLE pets DROP CONSTRAINT pets_status_check; ALTER TABLE orders DROP CONSTRAINT orders_status_check;
		ALTER TABLE webhooks DROP CONSTRAINT webhooks_state_check; ALTER TABLE deliveries DROP CONSTRAINT deliveries_state_check;
		ALTER TABLE key_secrets DROP CONSTRAINT key_secrets_hash_check, DROP CONSTRAINT key_secrets_key_id_fkey;
		ALTER TABLE photos DROP CONSTRAINT photos_pet_id_fkey; ALTER TABLE photo_parts DROP CONSTRAINT photo_parts_photo_id_fkey;
		ALTER TABLE pets ALTER COLUMN id SET GENERATED BY DEFAULT; ALTER TABLE orders ALTER COLUMN id SET GENERATED BY DEFAULT`)
	wantSound(t, sound)
	// The rules are the same as above, so one damage for each is enough. The damages
	// accumulate.
	damage := func(statements, rule, names string) {
		t.Helper()
		server.MustExec(t, pgtest.Name(sound), statements)
		wantWrong(t, sound, rule, names)
	}
	last := ""
	for _, d := range damages {
		if d.rule != last {
			damage(d.statements, d.rule, d.names)
		}
		last = d.rule
	}
	damage(`INSERT INTO event_queue (type, subject_id, pet_id, created_at, key_id, request_id, data) VALUES (0, 4711, 4711, 1, 0, '', '')`,
		"every event that waits for its number is complete", "4711")
	damage("ALTER TABLE pets ALTER COLUMN id RESTART WITH 11", "no id is assigned twice", "pets")
}
