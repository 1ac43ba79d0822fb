package e2e

import (
	"fmt"
	"net/url"
	"slices"
	"testing"
	"time"
)

// TestConsoleOfALargeStore: with a million pets, ten thousand keys and 90 days of usage,
// every page takes at most 50 ms.
func TestConsoleOfALargeStore(t *testing.T) {
	if !soak {
		t.Skip("measures times in a store of a million pets: with ANIMALSTORE_SOAK=1")
	}
	needs(t, "sqlite3")
	database := newDatabase(t)
	if r := run(t, "seed", "--pets", "1000000", "--database", "sqlite:"+database); r.code != 0 {
		t.Fatalf("seed: %+v", r)
	}
	key := newKey(t, database, "--name", "admin", "--permissions", "read,write,admin", "--plan", "enterprise", "--per-minute", "1000000000", "--per-day", "1000000000")
	hour := time.Now().Truncate(time.Hour).UnixMilli()
	query(t, database, fmt.Sprintf(`
		WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
		INSERT INTO keys SELECT i, 'key ' || i, 'free', 60, 1000, 3, 'production', 1000, 0, 0, 0, 0 FROM n WHERE i > (SELECT max(id) FROM keys);
		WITH RECURSIVE h(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM h WHERE i < 90 * 24 - 1)
		INSERT OR IGNORE INTO usage SELECT keys.id, %d - i * 3600000, 100 + i %% 50, i %% 7 FROM h, keys WHERE keys.id <= 100 OR i < 24`, hour))
	s := start(t, onDatabase(database))
	u := newConsoleUser(t)
	u.post(s, "/console/sign-in", url.Values{"key": {key}})
	for _, path := range []string{
		"/console", "/console?period=7d", "/console?period=90d", "/console/pets", "/console/pets?status=sold", "/console/pets?category=3", "/console/pets?category=3&status=pending",
		"/console/pets/new", "/console/pets/1", "/console/pets/500000", "/console/pets/1000000", "/console/orders", "/console/categories", "/console/categories/3",
		"/console/events", "/console/events?type=pet.*", "/console/events?type=order.*", "/console/events?subject=pet/1000000", "/console/keys", "/console/keys/new", "/console/keys/1?period=90d", "/console/keys/9999",
		"/console/webhooks", "/console/system",
	} {
		var times []time.Duration
		for range 11 {
			began := time.Now()
			u.open(s, path)
			times = append(times, time.Since(began))
		}
		slices.Sort(times)
		t.Logf("%-45s median %5.1f ms, slowest %5.1f ms", path, 1e3*times[5].Seconds(), 1e3*times[10].Seconds())
		if times[5] > 50*time.Millisecond {
			t.Errorf("%s: got a median of %v, want at most 50 ms", path, times[5])
		}
	}
}
