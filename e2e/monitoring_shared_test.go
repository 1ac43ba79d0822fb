package e2e

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"animalstore/internal/db/postgres/pgtest"
	"animalstore/internal/ratelimit/redistest"

	"github.com/jackc/pgx/v5"
)

// TestPostgresMetrics: the values of the pool and of the size are those of PostgreSQL.
func TestPostgresMetrics(t *testing.T) {
	t.Parallel()
	pg := pgtest.Shared(t)
	database := pg.NewDatabase(t, "")
	key := loadKey(t, database)
	s := start(t, withOps(), withArgs("--database", database+"&pool_max_conns=3"))
	c := newClient(t, s, key)
	wantStatus(t, c.do(t, "POST", "/v1/pets", newPetBody("Rex", 1, "sold")), 201, "")
	if got := s.metric("animalstore_postgres_pool_max"); got != 3 {
		t.Errorf("the pool has %v connections at most, want the 3 of its URL", got)
	}
	// The server's own statements use connections too.
	eventually(t, time.Minute, "1 to 3 connections are idle after a request", func() bool {
		got := s.metric("animalstore_postgres_pool_idle")
		return got >= 1 && got <= 3
	})
	if waits, waited := s.metric("animalstore_postgres_pool_waits_total"), s.metric("animalstore_postgres_pool_wait_seconds_total"); waits < 1 || waited <= 0 || waited > 60 {
		t.Errorf("%v waits took %v s, want at least the first connection's", waits, waited)
	}
	before := databaseSize(t, database)
	eventually(t, time.Minute, "the size is known", func() bool { return s.metric("animalstore_postgres_database_bytes") > 0 })
	// PostgreSQL adds pages while nothing seems to happen.
	if got, after := s.metric("animalstore_postgres_database_bytes"), databaseSize(t, database); got < before-1<<20 || got > after+1<<20 {
		t.Errorf("the database has %v bytes, want %v to %v", got, before, after)
	}

	unlock := lockTables(t, pg, database)
	ended := make(chan struct{})
	var readers sync.WaitGroup
	stop := sync.OnceFunc(func() {
		close(ended)
		unlock()
		readers.Wait()
	})
	defer stop()
	for range 6 { // more than there are connections
		readers.Go(func() {
			for {
				select {
				case <-ended:
					return
				default:
					c.try("GET", "/v1/pets", "")
				}
			}
		})
	}
	eventually(t, time.Minute, "connections are in use, and reads wait for them", func() bool {
		return s.metric("animalstore_postgres_pool_acquired") >= 2 && s.metric("animalstore_postgres_pool_waiting") >= 1
	})
	stop()
	eventually(t, time.Minute, "nothing waits", func() bool {
		return strings.Contains(s.metrics(), "\nanimalstore_postgres_pool_acquired 0\n") && strings.Contains(s.metrics(), "\nanimalstore_postgres_pool_waiting 0\n")
	})
}

// databaseSize asks PostgreSQL itself.
func databaseSize(t *testing.T, database string) (bytes float64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if err := conn.QueryRow(ctx, "SELECT pg_database_size(current_database())::float8").Scan(&bytes); err != nil {
		t.Fatal(err)
	}
	return bytes
}

// TestRedisMetrics: each request is one decision, made by Redis or without it, and the
// time of the calls is plausible.
func TestRedisMetrics(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	s := start(t, withOps(), withArgs("--redis", redis.URL()))
	c := newClient(t, s, loadKey(t, s.database))
	const requests = 20
	sent := 0.0
	send := func() {
		for range requests {
			wantStatus(t, c.get(t, "/v1/limits"), 200, "")
		}
		sent += requests
	}
	wantDecided := func(when string) {
		t.Helper()
		if shared, alone := s.metric(sharedDecisions), s.metric(fallbackDecisions); shared+alone != sent {
			t.Errorf("%s: %v decisions by Redis and %v without it, want %v in all", when, shared, alone, sent)
		}
	}
	begun := time.Now()
	send()
	wantDecided("at first")
	calls, took := s.metric("animalstore_redis_calls_total"), s.metric("animalstore_redis_call_seconds_total")
	if shared := s.metric(sharedDecisions); shared < 1 || calls < shared {
		t.Errorf("%v decisions by Redis in %v calls, want a call for each", shared, calls)
	}
	if most := time.Since(begun).Seconds() * 16; took <= 0 || took > most { // only a few calls run at once
		t.Errorf("%v calls took %v s, want more than 0 and less than %v", calls, took, most)
	}
	// On a busy machine a call may have been late. A server that decides alone already
	// wouldn't notice that Redis stops.
	awaitShared := func() {
		t.Helper()
		eventually(t, time.Minute, "limits are shared", func() bool { return strings.Contains(s.metrics(), "\n"+fallbackNow+" 0\n") })
	}
	awaitShared()
	fallbacks, failures := s.metric("animalstore_limit_fallbacks_total"), s.metric("animalstore_redis_failures_total")
	if fallbacks == 0 && failures > 0 {
		t.Errorf("%v failures without a fallback", failures)
	}

	redis.Stop() // a connection that ends between two calls isn't a call that failed
	send()
	wantDecided("without Redis")
	if got := s.metric(fallbackNow); got != 1 {
		t.Errorf("%s is %v without Redis, want 1", fallbackNow, got)
	}
	if got := s.metric(fallbackDecisions); got < requests {
		t.Errorf("%v decisions without Redis, want %d or more", got, requests)
	}
	for series, before := range map[string]float64{"animalstore_limit_fallbacks_total": fallbacks, "animalstore_redis_failures_total": failures} {
		if got := s.metric(series); got <= before {
			t.Errorf("%s is %v after Redis was stopped, and was %v before", series, got, before)
		}
	}

	redis.Kill()
	redis.Restart()
	awaitShared()
	shared := s.metric(sharedDecisions)
	eventually(t, time.Minute, "Redis decides again", func() bool {
		send()
		return s.metric(sharedDecisions) > shared
	})
	wantDecided("with Redis again")
	eventually(t, time.Minute, "Redis is found to have forgotten the key", func() bool {
		redis.Flush()
		send()
		return s.metric("animalstore_redis_forgotten_keys_total") >= 1
	})
}
