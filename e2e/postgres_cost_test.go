package e2e

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"animalstore/internal/db/postgres/pgtest"
)

// TestPostgresCost compares the processor time that a request costs the server on
// PostgreSQL and on SQLite. Waiting for PostgreSQL costs none, but talking to it
// does: a few times what SQLite takes is fine, an order of magnitude is a mistake.
func TestPostgresCost(t *testing.T) {
	t.Parallel()
	requests := 800
	if soak {
		requests = 60000
	}
	perRequest := map[string]map[string]time.Duration{}
	for name, database := range map[string]string{"SQLite": newDatabase(t), "PostgreSQL": pgtest.Shared(t).NewDatabase(t, "")} {
		s := start(t, onDatabase(database))
		key := loadKey(t, database)
		c := newClient(t, s, key)
		for i := range 200 {
			wantStatus(t, c.do(t, "POST", "/v1/pets", newPetBody(fmt.Sprint("pet ", i), 1, "available")), 201, "")
		}
		// What the server does by itself, such as looking for events, isn't the requests'.
		idle, resting := cpu(t, s.cmd.Process.Pid), time.Now()
		time.Sleep(time.Second)
		share := float64(cpu(t, s.cmd.Process.Pid)-idle) / float64(time.Since(resting))
		measure := func(what, method, path string, body func(n int) string) {
			before, began := cpu(t, s.cmd.Process.Pid), time.Now()
			var wg sync.WaitGroup
			for i := range 8 {
				c := newClient(t, s, key)
				wg.Go(func() {
					for n := range requests / 8 {
						a, err := c.try(method, path, body(i*requests+n))
						if err != nil || a.status/100 != 2 {
							t.Errorf("%s: got %d %s, %v", what, a.status, a.body, err)
							return
						}
					}
				})
			}
			wg.Wait()
			if perRequest[what] == nil {
				perRequest[what] = map[string]time.Duration{}
			}
			own := time.Duration(share * float64(time.Since(began)))
			perRequest[what][name] = (cpu(t, s.cmd.Process.Pid) - before - own) / time.Duration(requests)
		}
		none := func(int) string { return "" }
		// SQLite answers a page that did not change from memory, as it does here.
		measure("list of 20", "GET", "/v1/pets?limit=20", none)
		measure("get", "GET", "/v1/pets/100", none)
		measure("create", "POST", "/v1/pets", func(n int) string { return newPetBody(fmt.Sprint("new ", n), 1, "available") })
		s.stop()
	}
	for what, cost := range perRequest {
		ratio := float64(cost["PostgreSQL"]) / float64(max(cost["SQLite"], time.Microsecond))
		t.Logf("%-10s SQLite %v, PostgreSQL %v: %.1f times", what, cost["SQLite"], cost["PostgreSQL"], ratio)
		if ratio > 10 {
			t.Errorf("%s costs %.1f times as much on PostgreSQL, want less than 10", what, ratio)
		}
	}
}
