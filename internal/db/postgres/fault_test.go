//go:build unix

package postgres

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/db/postgres/pgtest"
	"animalstore/internal/fair"
	"animalstore/internal/testenv"
)

func create(t *testing.T, d *DB, name string, retry *db.Idempotency) error {
	_, _, err := d.CreatePet(t.Context(), animalstore.NewPet{Name: name, CategoryID: 1}, retry)
	return err
}

func mustCreate(t *testing.T, d *DB, name string) {
	t.Helper()
	if err := create(t, d, name, nil); err != nil {
		t.Fatalf("CreatePet: %v", err)
	}
}

// awaitCreate adds a pet to a database whose timeout is so short that a busy machine may
// need several attempts.
func awaitCreate(t *testing.T, d *DB, name string) {
	t.Helper()
	testenv.Eventually(t, "a pet is created", func() bool { return create(t, d, name, nil) == nil })
}

func names(t *testing.T, d *DB) map[string]int {
	t.Helper()
	pets, err := d.Pets(t.Context(), animalstore.PetQuery{}, db.Page{Limit: 10000})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]int{}
	for _, p := range pets {
		all[p.Name]++
	}
	return all
}

// refuseBy makes inserts of pets fail with an SQLSTATE: the first n, or all if n is 0.
func refuseBy(t *testing.T, server *pgtest.Server, url, code string, n int) {
	t.Helper()
	server.MustExec(t, pgtest.Name(url), fmt.Sprintf(`
		DROP TRIGGER IF EXISTS refuse ON pets; DROP SEQUENCE IF EXISTS attempts; CREATE SEQUENCE attempts;
		CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF nextval('attempts') <= %d OR %[1]d = 0 THEN RAISE EXCEPTION 'by the test' USING ERRCODE = '%s'; END IF;
			RETURN NEW;
		END $$;
		CREATE TRIGGER refuse BEFORE INSERT ON pets FOR EACH ROW EXECUTE FUNCTION refuse()`, n, code))
}

// TestRefusals_Slow: the server's errors become those of package db, with and without a
// transaction, and the next write succeeds.
func TestRefusals_Slow(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	url := server.NewDatabase(t, "")
	d := mustOpen(t, url, Options{Timeout: testenv.Deadline})
	for _, test := range []struct {
		code, name string
		want       error
	}{
		{"53100", "disk full", db.ErrFull},
		{"53200", "out of memory", db.ErrUnavailable},
		{"53300", "too many connections", db.ErrUnavailable},
		{"25006", "read-only", db.ErrUnavailable},
		{"57P01", "shutting down", db.ErrUnavailable},
		{"57P03", "starting up", db.ErrUnavailable},
		{"57014", "cancelled", db.ErrUnavailable},
		{"55P03", "locked", db.ErrUnavailable},
		{"08006", "connection failure", db.ErrUnavailable},
		{"22012", "division by zero", nil}, // a bug of ours
	} {
		t.Run(test.name, func(t *testing.T) {
			for i, retry := range []*db.Idempotency{nil, {KeyID: 1, Token: "refused", At: animalstore.At(time.Now())}} {
				refuseBy(t, server, url, test.code, 0)
				err := create(t, d, "refused", retry)
				for _, kind := range []error{db.ErrFull, db.ErrUnavailable, db.ErrOutcomeUnknown} {
					if got := errors.Is(err, kind); err == nil || got != (kind == test.want) {
						t.Errorf("retry %d: got %v, which is %q: %t, want %t", i, err, kind, got, kind == test.want)
					}
				}
				refuseBy(t, server, url, test.code, -1)
				if err := create(t, d, "after "+test.name, nil); err != nil {
					t.Errorf("the next write: %v", err)
				}
			}
		})
	}
	if got := names(t, d); got["refused"] != 0 {
		t.Errorf("a refused pet is stored: %v", got)
	}
}

// TestConflictsAreRetried_Slow: a write that was rolled back because of another one is
// retried, and its caller doesn't notice.
func TestConflictsAreRetried_Slow(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	url := server.NewDatabase(t, "")
	d := mustOpen(t, url, Options{Timeout: testenv.Deadline})
	for _, code := range []string{serializationFailure, deadlockDetected} {
		for i, retry := range []*db.Idempotency{nil, {KeyID: 1, Token: code, At: animalstore.At(time.Now())}} {
			refuseBy(t, server, url, code, 3)
			name := fmt.Sprint(code, " ", i)
			if err := create(t, d, name, retry); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if got := names(t, d)[name]; got != 1 {
				t.Errorf("%s is stored %d times, want once", name, got)
			}
		}
	}
	// But not forever: after too many conflicts it is unavailable.
	refuseBy(t, server, url, serializationFailure, 0)
	if err := create(t, d, "never", nil); !errors.Is(err, db.ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
}

// TestLostResponses_Slow: if the response to a commit is lost, the caller learns that the
// outcome is unknown. Retried with the same token, the write is done once.
func TestLostResponses_Slow(t *testing.T) {
	t.Parallel()
	url := pgtest.Shared(t).NewDatabase(t, "")
	proxy := pgtest.NewProxy(t, url)
	d := mustOpen(t, proxy.URL(url), Options{Timeout: testenv.Deadline})
	retry := &db.Idempotency{KeyID: 1, Token: "t", At: animalstore.At(time.Now())}

	lost := proxy.LoseResponse("commit\x00")
	if err := create(t, d, "in a transaction", retry); !errors.Is(err, db.ErrOutcomeUnknown) || errors.Is(err, db.ErrUnavailable) {
		t.Errorf("a lost response to COMMIT: got %v, want ErrOutcomeUnknown", err)
	}
	<-lost
	pet, replayed, err := d.CreatePet(t.Context(), animalstore.NewPet{Name: "in a transaction", CategoryID: 1}, retry)
	if err != nil || !replayed {
		t.Errorf("sent again: %+v, replayed %t, %v, want a replay", pet, replayed, err)
	}
	lost = proxy.LoseResponse("alone")
	if err := create(t, d, "alone", nil); !errors.Is(err, db.ErrOutcomeUnknown) {
		t.Errorf("a lost response to a statement without a transaction: got %v, want ErrOutcomeUnknown", err)
	}
	<-lost
	// Before COMMIT is sent the outcome is known.
	lost = proxy.LoseResponse("too early")
	if err := create(t, d, "too early", &db.Idempotency{KeyID: 1, Token: "u", At: retry.At}); !errors.Is(err, db.ErrUnavailable) || errors.Is(err, db.ErrOutcomeUnknown) {
		t.Errorf("a lost response before COMMIT: got %v, want ErrUnavailable", err)
	}
	<-lost
	// The outcome of a read doesn't matter.
	lost = proxy.LoseResponse("SELECT 1")
	if err := d.Ping(t.Context()); !errors.Is(err, db.ErrUnavailable) {
		t.Errorf("a lost response to a read: got %v, want ErrUnavailable", err)
	}
	<-lost
	if got, want := names(t, d), map[string]int{"in a transaction": 1, "alone": 1}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("stored are %v, want %v", got, want)
	}
}

// TestLongPages_Slow: long pages of a near server wait for each other, those of a distant one
// don't.
func TestLongPages_Slow(t *testing.T) {
	t.Parallel()
	url := pgtest.Shared(t).NewDatabase(t, "")
	proxy := pgtest.NewProxy(t, url)
	proxy.Delay(2 * highLatency)
	for url, distant := range map[string]bool{url: false, proxy.URL(url): true} {
		d := mustOpen(t, url, Options{Timeout: testenv.Deadline})
		testenv.Eventually(t, "the latency is measured", func() bool { // on a busy machine not at once
			d.pool.Reset()
			return d.Ping(t.Context()) == nil && d.latency.isHigh() == distant
		})
		d.long = fair.NewSemaphore(0, 0)
		read := make(chan error, 1)
		go func() {
			_, err := d.Pets(t.Context(), animalstore.PetQuery{}, db.Page{Limit: longPage + 1})
			read <- err
		}()
		testenv.Eventually(t, "the page is read or waits", func() bool { return len(read) > 0 || d.long.Waiting() > 0 })
		if waits := d.long.Waiting() > 0; waits == distant {
			t.Errorf("distant is %t: the page waits is %t", distant, waits)
		}
		d.long.Close()
		if err := <-read; err != nil && distant {
			t.Error(err)
		}
	}
}

// TestServerGone_Slow: when the server fails, more operations than there are connections
// end, and succeed again when it is back. Connections from before are detected before
// anything is sent on them.
func TestServerGone_Slow(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	url := server.NewDatabase(t, "")
	d, idle := mustOpen(t, url, Options{Timeout: time.Second}), mustOpen(t, url, Options{Timeout: testenv.Deadline})
	awaitCreate(t, d, "before")
	for _, trouble := range []struct {
		name       string
		begin, end func()
	}{
		{"frozen", func() { server.Freeze() }, server.Thaw},
		{"killed", server.Kill, func() { server.Restart(t) }},
		{"stopped", func() { server.Stop(t) }, func() { server.Restart(t) }},
	} {
		t.Run(trouble.name, func(t *testing.T) {
			var wg sync.WaitGroup
			for range 3 * defaultConns { // opens many connections
				wg.Go(func() { create(t, idle, "before", nil) })
			}
			wg.Wait()
			trouble.begin()
			for i := range 3 * defaultConns {
				wg.Go(func() {
					var err error
					switch i % 3 {
					case 0:
						_, err = d.Pets(t.Context(), animalstore.PetQuery{}, db.Page{Limit: 1})
					case 1:
						err = create(t, d, "during", nil)
					case 2:
						err = create(t, d, "during", &db.Idempotency{KeyID: 1, Token: fmt.Sprint(trouble.name, i), At: animalstore.At(time.Now())})
					}
					if !errors.Is(err, db.ErrUnavailable) && !errors.Is(err, db.ErrOutcomeUnknown) {
						t.Errorf("operation %d: got %v, want that it is unavailable", i, err)
					}
				})
			}
			wg.Wait()
			trouble.end()
			for i := range 2 * defaultConns {
				awaitCreate(t, d, "after")
				if err := create(t, idle, "after", nil); err != nil {
					t.Errorf("write %d on a connection from before: %v", i, err)
				}
			}
		})
	}
}

// TestBusyLocks_Slow: operations that wait for a lock fail in time, and so do those that
// wait for a connection behind them.
func TestBusyLocks_Slow(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	url := server.NewDatabase(t, "")
	d := mustOpen(t, url, Options{Timeout: time.Second})
	awaitCreate(t, d, "locked")
	holder, err := mustOpen(t, url, Options{Timeout: testenv.Deadline}).pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tx, err := holder.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "SET idle_in_transaction_session_timeout = 0"); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "SELECT * FROM pets FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 3 * defaultConns {
		wg.Go(func() {
			_, err := d.UpdatePet(t.Context(), 1, func(p *animalstore.Pet, _ bool) error { p.Name = "never"; return nil })
			if !errors.Is(err, db.ErrUnavailable) || errors.Is(err, db.ErrOutcomeUnknown) {
				t.Errorf("got %v, want ErrUnavailable", err)
			}
		})
	}
	wg.Wait()
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	holder.Release()
	testenv.Eventually(t, "the pet can be changed", func() bool {
		_, err := d.UpdatePet(t.Context(), 1, func(p *animalstore.Pet, _ bool) error { p.Name = "free"; return nil })
		return err == nil
	})
}

// TestDemotedServer_Slow: after the first refusal by a server that became read-only, writes
// go to the server of the URL that accepts them.
func TestDemotedServer_Slow(t *testing.T) {
	t.Parallel()
	first, second := pgtest.Start(t), pgtest.Start(t)
	for _, s := range []*pgtest.Server{first, second} {
		s.MustExec(t, "postgres", "CREATE DATABASE store")
		mustOpen(t, s.URL("store"), Options{Timeout: testenv.Deadline}).Close()
	}
	both := strings.Replace(first.URL("store"), first.Address(), first.Address()+","+second.Address(), 1) + "&target_session_attrs=read-write"
	d := mustOpen(t, both, Options{Timeout: testenv.Deadline})
	var wg sync.WaitGroup // opens many connections, all to the first server
	for range 3 * defaultConns {
		wg.Go(func() { create(t, d, "first", nil) })
	}
	wg.Wait()
	first.Set(t, "default_transaction_read_only", "on")
	there := mustOpen(t, second.URL("store"), Options{Timeout: testenv.Deadline})
	refusals := 0
	testenv.Eventually(t, "writes reach the second server", func() bool {
		// The first server needs a moment to notice, and accepts some writes until then.
		if err := create(t, d, "second", nil); err != nil {
			refusals++
			if !errors.Is(err, db.ErrUnavailable) || errors.Is(err, db.ErrOutcomeUnknown) {
				t.Errorf("refused with %v, want ErrUnavailable", err)
			}
		}
		return names(t, there)["second"] > 0
	})
	for i := range 2 * defaultConns {
		if err := create(t, d, "third", nil); err != nil {
			t.Errorf("write %d afterwards: %v", i, err)
		}
	}
	if got := names(t, there)["third"]; got != 2*defaultConns || refusals != 1 {
		t.Errorf("the second server has %d of %d writes, after %d refusals; want all, after one", got, 2*defaultConns, refusals)
	}
}
