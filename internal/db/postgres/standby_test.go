//go:build unix

package postgres

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/db/postgres/pgtest"
	"animalstore/internal/testenv"
)

// waitForStandby makes every commit wait for a standby that doesn't exist, or for none.
func waitForStandby(t *testing.T, server *pgtest.Server, wait bool) {
	t.Helper()
	name := map[bool]string{true: "absent"}[wait]
	server.Set(t, "synchronous_standby_names", name)
}

// cancelWaits makes commits give up waiting for their standby, as an operator could, until
// do returns.
func cancelWaits(t *testing.T, server *pgtest.Server, do func() error) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- do() }()
	testenv.Eventually(t, "the write ends", func() bool {
		server.MustExec(t, "postgres", "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
		return len(done) > 0
	})
	return <-done
}

// keepReading reads until the test ends. A server that responds to reads isn't gone.
func keepReading(t *testing.T, d *DB) {
	var reading sync.WaitGroup
	reading.Go(func() {
		for t.Context().Err() == nil {
			_ = d.Ping(t.Context())
			time.Sleep(time.Millisecond)
		}
	})
	t.Cleanup(reading.Wait)
}

// TestUnconfirmedCommit_Slow: a server that stops waiting for its standby reports a commit
// with a warning. If that server were lost now, the write would be too.
func TestUnconfirmedCommit_Slow(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	for i, retry := range []*db.Idempotency{nil, {KeyID: 1, Token: "t", At: animalstore.At(time.Now())}} {
		d := mustOpen(t, server.NewDatabase(t, ""), Options{Timeout: testenv.Deadline})
		mustCreate(t, d, "before")
		waitForStandby(t, server, true)
		err := cancelWaits(t, server, func() error { return create(t, d, "unconfirmed", retry) })
		if !errors.Is(err, db.ErrOutcomeUnknown) {
			t.Errorf("write %d: got %v, want ErrOutcomeUnknown", i, err)
		}
		waitForStandby(t, server, false)
	}
}

// TestHungStandby_Slow: while commits wait for a standby, reads go on and writes fail at once,
// so that neither takes all connections. Commits that were given up aren't cancelled: that
// would show their changes.
func TestHungStandby_Slow(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	url := server.NewDatabase(t, "")
	d, other := mustOpen(t, url, Options{Timeout: time.Second}), mustOpen(t, url, Options{Timeout: testenv.Deadline})
	awaitCreate(t, d, "before")
	keepReading(t, d)
	// A warning at the start of a session, as after an update of the system, says nothing
	// about commits.
	server.MustExec(t, "postgres", "UPDATE pg_database SET datcollversion = '0' WHERE datname = '"+pgtest.Name(url)+"'")
	waitForStandby(t, server, true)
	var all sync.WaitGroup
	for i := range 200 { // also while others already wait
		retry := &db.Idempotency{KeyID: 1, Token: fmt.Sprint(i), At: animalstore.At(time.Now())} // not in batches
		all.Go(func() {
			err := create(t, d, "during", retry)
			if !errors.Is(err, db.ErrOutcomeUnknown) && !errors.Is(err, db.ErrUnavailable) {
				t.Errorf("a write while commits wait: %v", err)
			}
		})
		time.Sleep(10 * time.Millisecond)
	}
	all.Wait()
	waiting := 0
	err := other.pool.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'").Scan(&waiting)
	if err != nil || waiting == 0 || waiting > defaultConns+1 {
		t.Errorf("%d commits wait, %v; want some, at most one per connection and another", waiting, err)
	}
	if got := names(t, other)["during"]; got != 0 {
		t.Errorf("%d changes that no standby has can be read, want none", got)
	}
	testenv.Eventually(t, "a read succeeds", func() bool { return d.Ping(t.Context()) == nil })

	waitForStandby(t, server, false)
	awaitCreate(t, d, "after")
}

// TestUnconfirmedEvents_Slow: events are shown only once the commit that numbered them is
// confirmed. Otherwise a promoted standby, which lacks it, would give their ids to others.
func TestUnconfirmedEvents_Slow(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	url := server.NewDatabase(t, "")
	open := func() *DB { return mustOpen(t, url, Options{Timeout: testenv.Deadline}) }
	writer, publisher, idle := open(), open(), open()
	mustCreate(t, writer, "before")
	mustPublish(t, writer)
	reader, searcher := mustOpen(t, url, Options{Timeout: time.Second}), mustOpen(t, url, Options{Timeout: time.Second})
	events := func() (n int, err error) {
		all, _, err := reader.Events(t.Context(), db.EventQuery{Limit: 10})
		return len(all), err
	}
	confirmed := 0
	testenv.Eventually(t, "events are read", func() bool { n, err := events(); confirmed = n; return err == nil })

	waitForStandby(t, server, true)
	if err := cancelWaits(t, server, func() error { return create(t, writer, "unconfirmed", nil) }); err == nil {
		t.Fatal("the commit was confirmed, so the test proves nothing")
	}
	err := cancelWaits(t, server, func() error { _, err := publisher.PublishEvents(t.Context()); return err })
	if !errors.Is(err, db.ErrUnavailable) || errors.Is(err, db.ErrOutcomeUnknown) {
		t.Errorf("publish: got %v, want ErrUnavailable", err)
	}
	visible := 0
	if err := idle.pool.QueryRow(t.Context(), "SELECT count(*) FROM events").Scan(&visible); err != nil || visible <= confirmed {
		t.Fatalf("%d events are visible, %v; so the test proves nothing", visible, err)
	}
	for range 3 {
		if n, err := events(); !errors.Is(err, db.ErrUnavailable) || errors.Is(err, db.ErrOutcomeUnknown) {
			t.Errorf("got %d events, %v; want ErrUnavailable", n, err)
		}
	}
	later := animalstore.At(time.Now().Add(time.Hour)) // of the newest event, which isn't confirmed
	if position, err := searcher.EventsSince(t.Context(), later); !errors.Is(err, db.ErrUnavailable) {
		t.Errorf("EventsSince = %d, %v; want ErrUnavailable", position, err)
	}
	waitForStandby(t, server, false)
	testenv.Eventually(t, "all events are read", func() bool { n, err := events(); return err == nil && n == visible })
}

// TestIsolatedPrimary_Slow: the standby is promoted while the primary still responds, and is
// the first in the URL. Its commits wait, so writes go to the new one; a server that starts
// uses that at once; and the old one isn't used again.
func TestIsolatedPrimary_Slow(t *testing.T) {
	t.Parallel()
	primary := pgtest.Start(t)
	primary.MustExec(t, "postgres", "CREATE DATABASE store")
	standby := primary.Standby(t)
	both := strings.Replace(primary.URL("store"), primary.Address(), primary.Address()+","+standby.Address(), 1) + "&target_session_attrs=read-write"
	var log testenv.Buffer
	d := mustOpen(t, both, Options{Timeout: time.Second, Log: slog.New(slog.NewTextHandler(&log, nil))})
	awaitCreate(t, d, "before")
	keepReading(t, d)

	waitForStandby(t, primary, true)
	if err := create(t, d, "isolated", nil); !errors.Is(err, db.ErrOutcomeUnknown) {
		t.Fatalf("got %v, want ErrOutcomeUnknown", err)
	}
	standby.Promote(t)
	started := mustOpen(t, both, Options{Timeout: testenv.Deadline})
	mustCreate(t, started, "started later")
	awaitCreate(t, d, "after")
	there := mustOpen(t, standby.URL("store"), Options{Timeout: testenv.Deadline})
	if got := names(t, there); got["started later"] != 1 || got["after"] != 1 {
		t.Errorf("the new primary has %v, want the pets that were added after it was promoted", got)
	}

	standby.Stop(t)
	for range 3 {
		if err := create(t, d, "nowhere", nil); !errors.Is(err, db.ErrUnavailable) {
			t.Errorf("without the new primary: got %v, want ErrUnavailable", err)
		}
	}
	if !strings.Contains(log.String(), "this PostgreSQL server is a former primary") {
		t.Errorf("the log doesn't say that the server is a former primary:\n%s", log.String())
	}
	standby.Restart(t)
	awaitCreate(t, d, "restarted")
}

// TestMovedAddress_Slow: a URL with one address, which leads to the promoted standby from then
// on. Connections from before still lead to the old primary, which responds or is frozen.
func TestMovedAddress_Slow(t *testing.T) {
	t.Parallel()
	for _, frozen := range []bool{false, true} {
		t.Run(fmt.Sprintf("frozen is %t", frozen), func(t *testing.T) {
			t.Parallel()
			primary := pgtest.Start(t)
			primary.MustExec(t, "postgres", "CREATE DATABASE store")
			standby := primary.Standby(t)
			proxy := pgtest.NewProxy(t, primary.URL("store"))
			d := mustOpen(t, proxy.URL(primary.URL("store")), Options{Timeout: time.Second})
			awaitCreate(t, d, "before")
			keepReading(t, d)
			waitForStandby(t, primary, true)
			if err := create(t, d, "isolated", nil); !errors.Is(err, db.ErrOutcomeUnknown) {
				t.Fatalf("got %v, want ErrOutcomeUnknown", err)
			}
			if frozen {
				primary.Freeze()
			}
			standby.Promote(t)
			proxy.LeadTo(standby)
			awaitCreate(t, d, "after")
			there := mustOpen(t, standby.URL("store"), Options{Timeout: testenv.Deadline})
			if got := names(t, there)["after"]; got == 0 {
				t.Error("the write didn't go to the new primary")
			}
		})
	}
}

// TestSilentConnections_Slow: the connections from before stay silent, like those to a machine
// that was restarted, also that of the commit that waits for the standby.
func TestSilentConnections_Slow(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	url := server.NewDatabase(t, "")
	proxy := pgtest.NewProxy(t, url)
	d := mustOpen(t, proxy.URL(url), Options{Timeout: time.Second})
	awaitCreate(t, d, "before")
	keepReading(t, d)
	waitForStandby(t, server, true)
	if err := create(t, d, "during", nil); !errors.Is(err, db.ErrOutcomeUnknown) {
		t.Fatalf("got %v, want ErrOutcomeUnknown", err)
	}
	direct := mustOpen(t, url, Options{Timeout: testenv.Deadline})
	testenv.Eventually(t, "a commit waits for the others", func() (waits bool) {
		err := direct.pool.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity
			WHERE wait_event = 'SyncRep' AND query LIKE '%pg_logical_emit_message%')`).Scan(&waits)
		return err == nil && waits
	})
	trips := d.breaker.trips.Load()
	proxy.Delay(testenv.Deadline)
	waitForStandby(t, server, false)
	testenv.Eventually(t, "reads fail", func() bool { return d.breaker.trips.Load() > trips })
	proxy.Delay(0)
	awaitCreate(t, d, "after")
}
