package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"animalstore/internal/testenv"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// TestKill repeatedly kills the server under load, on one file. Everything it
// acknowledged must be stored afterwards, and no id may be used twice.
func TestKill(t *testing.T) {
	t.Parallel()
	rounds := testenv.Count(2, 1000)
	database := newDatabase(t)
	key := loadKey(t, database)
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
		if got := eventsMatch(t, database); got != "ok" {
			t.Fatalf("round %d: %s", round, got)
		}
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
func integrity(t testing.TB, database string) (verdict string) {
	t.Helper()
	onCopy(t, database, func(conn *sqlite.Conn) (err error) {
		verdict, err = sqlitex.ResultText(conn.Prep("PRAGMA integrity_check"))
		return err
	})
	return verdict
}

// onCopy calls f with a connection to a copy of a file.
func onCopy(t testing.TB, database string, f func(*sqlite.Conn) error) {
	t.Helper()
	dir, err := os.MkdirTemp(t.TempDir(), "copy") // removed at once: a soak creates a thousand
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	copied := filepath.Join(dir, "copy.db")
	for _, suffix := range []string{"", "-wal"} {
		if err := copyFile(database+suffix, copied+suffix); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	conn, err := sqlite.OpenConn(copied, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := f(conn); err != nil {
		t.Fatal(err)
	}
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
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

// eventsMatch returns "ok" if every change in the file of a stopped server has its
// event, and every event its change.
func eventsMatch(t testing.TB, database string) string {
	t.Helper()
	got := "ok"
	onCopy(t, database, func(conn *sqlite.Conn) error {
		return sqlitex.ExecuteTransient(conn, withoutEvents, &sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
			got = stmt.ColumnText(0)
			return nil
		}})
	})
	return got
}

// order is an order as a client sees it.
type order struct {
	ID     int64  `json:"id"`
	PetID  int64  `json:"petId"`
	Status string `json:"status"`
}

// intent is a write that its client retries until it gets the response.
type intent struct {
	path, body, token string
	responses         []response // all responses so far
}

// TestRetryAfterKill: clients send pets and orders, each with an Idempotency-Key, while
// the server is killed. Clients without a response send them again to the next server.
// In the end each write was made once, and all responses to it are the same.
func TestRetryAfterKill(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	rounds := testenv.Count(2, 300)
	database := newDatabase(t)
	key := loadKey(t, database)
	var all []*intent
	replays := 0
	for round := range rounds {
		s := start(t, onDatabase(database))
		intents := newIntents(t, newClient(t, s, key), round)
		var answered atomic.Int64
		done := make(chan struct{})
		go func() {
			defer close(done)
			sendAll(t, s, key, intents, &answered)
		}()
		// Kill at a different moment of the work in each round.
		enough := int64(len(intents) * (1 + round%4) / 5)
		testenv.Eventually(t, "some writes are answered", func() bool { return answered.Load() >= enough })
		s.kill()
		<-done

		// Everybody sends again, several times at once, including clients that have a
		// response, which a lost connection might have kept from them.
		s = start(t, onDatabase(database))
		for range 2 {
			sendAll(t, s, key, intents, &answered)
		}
		replays += checkIntents(t, intents)
		all = append(all, intents...)
		s.kill()
	}
	if replays == 0 {
		t.Error("no write was replayed: the test proves nothing")
	}
	s := start(t, onDatabase(database))
	checkStored(t, newClient(t, s, key), all)
	s.stop()
	if got := integrity(t, database); got != "ok" {
		t.Errorf("the file is damaged: %s", got)
	}
}

// newIntents returns writes of new pets, and of orders for existing pets.
func newIntents(t *testing.T, c *client, round int) (intents []*intent) {
	t.Helper()
	for i := range 60 {
		in := &intent{path: "/v1/pets", body: newPetBody(fmt.Sprintf("wanted %d in round %d", i, round), 7, "available"), token: fmt.Sprintf("%d-%d", round, i)}
		if i%2 == 0 {
			a := c.do(t, "POST", "/v1/pets", newPetBody("to be ordered", 7, "available"))
			wantStatus(t, a, 201, "")
			p, err := decodePet(a.body)
			if err != nil {
				t.Fatal(err)
			}
			in.path, in.body = "/v1/store/orders", fmt.Sprintf(`{"petId":%d}`, p.ID)
		}
		intents = append(intents, in)
	}
	return intents
}

// sendAll sends each write twice at once, until the server is gone.
func sendAll(t *testing.T, s *server, key string, intents []*intent, answered *atomic.Int64) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	for i := range 12 {
		c := newClient(t, s, key)
		wg.Go(func() {
			for n := i / 2; n < len(intents); n += 6 { // two clients for each
				in := intents[n]
				a, err := c.try("POST", in.path, in.body, "Idempotency-Key", in.token)
				if err != nil {
					return // the server is gone; this write may or may not be stored
				}
				mu.Lock()
				if in.responses = append(in.responses, a); len(in.responses) == 1 {
					answered.Add(1)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}

// checkIntents compares all responses to each write. It counts the replays.
func checkIntents(t *testing.T, intents []*intent) (replays int) {
	t.Helper()
	for _, in := range intents {
		firsts := 0
		for _, a := range in.responses {
			if a.status != 201 || a.body != in.responses[0].body || a.header.Get("Location") != in.responses[0].header.Get("Location") {
				t.Fatalf("%s %s: got %d %s and %d %s, want them the same", in.path, in.body, a.status, a.body, in.responses[0].status, in.responses[0].body)
			}
			if a.header.Get("Idempotent-Replayed") == "" {
				firsts++
			}
		}
		if len(in.responses) < 4 || firsts > 1 {
			t.Fatalf("%s %s: got %d responses of which %d aren't replays, want at least 4 and at most 1", in.path, in.body, len(in.responses), firsts)
		}
		replays += len(in.responses) - firsts
	}
	return replays
}

// checkStored checks that each write is stored exactly once.
func checkStored(t *testing.T, c *client, intents []*intent) {
	t.Helper()
	names := map[string]int{}
	for _, p := range c.allPets(t, 0) {
		names[p.Name]++
	}
	orders := map[int64][]order{}
	for next := "/v1/store/orders?limit=100"; next != ""; {
		a := c.get(t, next)
		wantStatus(t, a, 200, "")
		var page []order
		if err := json.Unmarshal([]byte(a.body), &page); err != nil {
			t.Fatal(err)
		}
		for _, o := range page {
			orders[o.PetID] = append(orders[o.PetID], o)
		}
		next = nextPage(a.header)
	}
	for _, in := range intents {
		if in.path == "/v1/pets" {
			p, err := decodePet(in.responses[0].body)
			if err != nil || names[p.Name] != 1 {
				t.Errorf("%s: stored %d times, want once (%v)", in.body, names[p.Name], err)
			}
			continue
		}
		var o order
		if err := json.Unmarshal([]byte(in.responses[0].body), &o); err != nil {
			t.Fatal(err)
		}
		if got := orders[o.PetID]; !slices.Equal(got, []order{o}) {
			t.Errorf("%s: got %+v stored, want only %+v", in.body, got, o)
		}
		a := c.get(t, fmt.Sprint("/v1/pets/", o.PetID))
		if p, err := decodePet(a.body); err != nil || p.Status != "pending" {
			t.Errorf("the ordered pet is %s, want it pending", a.body)
		}
	}
}
