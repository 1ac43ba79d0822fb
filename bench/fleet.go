package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"animalstore"
	"animalstore/internal/db"

	"github.com/jackc/pgx/v5"
)

// fleet is a PostgreSQL and a Redis that several instances of the server share.
type fleet struct {
	*bench
	postgres, redis *process
	url, redisURL   string
	seeded          server    // describes an instance
	keys            []string  // of the callers
	store           db.DB     // creates events without publishing them
	conn            *pgx.Conn // to measure and to hold up publishing
	instances       []*server
}

func (b *bench) newFleet() *fleet {
	f := &fleet{bench: b}
	f.postgres, f.url = findPostgres(b).runSeeded(b.pets, false)
	f.redis, f.redisURL, _ = b.startRedis("redis")
	f.seeded = b.withKeys("ours", f.url, b.pets, b.amount(redisKeys))
	f.seeded.rotateKeys = true
	f.keys = strings.Fields(string(must(os.ReadFile(f.seeded.keysFile))))
	ours := f.url + "&application_name=bench"
	f.store = b.openStore(ours)
	f.conn = must(pgx.Connect(b.ctx, ours))
	return f
}

func (f *fleet) close() {
	f.stop()
	f.conn.Close(f.ctx)
	f.store.Close()
	f.redis.stop()
	f.postgres.stop()
}

// restart replaces the instances by n new ones: one that had followers keeps reading events
// for a while.
func (f *fleet) restart(n int) {
	f.stop()
	for i := range n {
		s := f.seeded
		s.name = fmt.Sprintf("ours-%d", i+1)
		flags := append(slices.Clone(receivers), "--redis", f.redisURL)
		f.instances = append(f.instances, f.startBuild(s, f.release, f.url, flags...))
	}
}

func (f *fleet) stop() {
	var stopping sync.WaitGroup
	for _, s := range f.instances {
		stopping.Go(s.stop)
	}
	stopping.Wait()
	f.instances = nil
}

// resources are what has been used so far.
type resources struct {
	postgres, servers, redis time.Duration // CPU time
	clients                  time.Duration // the same, of wrk and this program
	commits, wal             int64         // on PostgreSQL: transactions that wrote, and bytes of WAL
}

func (f *fleet) resources() (u resources) {
	for _, s := range f.instances {
		u.servers += s.process.cpu()
	}
	u.postgres, u.redis = f.postgres.cpu(), f.redis.cpu()
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var r syscall.Rusage
		check(syscall.Getrusage(who, &r))
		u.clients += time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	f.query("SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint", &u.commits)
	f.query("SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint", &u.wal)
	return u
}

// query scans the only row of a query.
func (f *fleet) query(query string, into ...any) {
	check(f.conn.QueryRow(f.ctx, query).Scan(into...))
}

// effort is what some work took.
type effort struct {
	count   int // of what was done
	seconds float64
	behind  time.Duration // of creates: from the last one until its event was published
	resources
}

func (e effort) perSecond() float64 { return float64(e.count) / e.seconds }

// micros returns one of the CPU times for each that was done.
func (e effort) micros(of time.Duration) float64 {
	return float64(of.Microseconds()) / float64(e.count)
}

// measure returns what work took. work returns how many it did, and in how much time.
func (f *fleet) measure(work func() (count int, took time.Duration)) effort {
	before := f.resources()
	busyBefore, allBefore := machineTime()
	count, took := work()
	used := f.resources()
	busyAfter, allAfter := machineTime()
	used.postgres -= before.postgres
	used.servers -= before.servers
	used.redis -= before.redis
	used.clients -= before.clients
	used.commits -= before.commits
	used.wal -= before.wal
	g := f.load
	g.elapsed += allAfter - allBefore
	g.foreign += max(0, busyAfter-busyBefore-used.postgres-used.servers-used.redis-used.clients)
	return effort{count: count, seconds: took.Seconds(), resources: used}
}

// publishLimit is when a benchmark stops waiting for events.
const publishLimit = time.Minute

// await polls until done. What done takes is measured too.
func (f *fleet) await(what string, done func() bool) {
	for began := time.Now(); !done(); time.Sleep(5 * time.Millisecond) {
		check(f.ctx.Err())
		if time.Since(began) > publishLimit {
			check(fmt.Errorf("timed out after %v waiting for %s", publishLimit, what))
		}
	}
}

// awaitPublished waits until all events are published.
func (f *fleet) awaitPublished() {
	f.await("the queue of events to become empty", func() (empty bool) {
		f.query("SELECT NOT EXISTS (SELECT FROM event_queue)", &empty)
		return empty
	})
}

func (f *fleet) newestEvent() (id int64) {
	f.query("SELECT coalesce(max(id), 0) FROM events", &id)
	return id
}

// eventSize is how much an event takes on disk, in bytes.
func (f *fleet) eventSize() (bytes float64) {
	f.query("SELECT pg_total_relation_size('events')::float8 / count(*) FROM events", &bytes)
	return bytes
}

// queueEvents creates n pets while no instance can publish their events, because the table
// is locked. publish unlocks it. The last event gets the id last.
func (f *fleet) queueEvents(n int) (last int64, publish func()) {
	f.awaitPublished()
	tx := must(f.conn.Begin(f.ctx))
	must(tx.Exec(f.ctx, "LOCK TABLE events IN SHARE MODE"))
	pets := make([]animalstore.NewPet, 100)
	for i := range pets {
		pets[i] = animalstore.NewPet{Name: "Rex the dog 4711", CategoryID: 7, Status: animalstore.PetAvailable}
	}
	for left := n; left > 0; left -= len(pets) {
		_, _, err := f.store.CreatePets(f.ctx, pets[:min(left, len(pets))], nil)
		check(err)
	}
	var queued int
	if f.query("SELECT count(*) FROM event_queue", &queued); queued != n {
		check(fmt.Errorf("%d events are queued, want %d", queued, n))
	}
	return f.newestEvent() + int64(n), func() { check(tx.Commit(f.ctx)) }
}

// backends returns how many connections the instances have, and the memory that is one
// PostgreSQL process's own, in MiB.
func (f *fleet) backends() (count, memory float64) {
	rows := must(f.conn.Query(f.ctx, "SELECT pid FROM pg_stat_activity WHERE application_name = 'animalstore'"))
	pids := must(pgx.CollectRows(rows, pgx.RowTo[int]))
	for _, pid := range pids {
		memory += statusMemory(pid, "RssAnon")
	}
	return float64(len(pids)), memory / float64(len(pids))
}
