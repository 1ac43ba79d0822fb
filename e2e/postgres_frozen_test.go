package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"
)

// TestFrozenPrimary: the PostgreSQL primary stops responding without closing a
// connection, and its standby is promoted. The server, which has a pool of open
// connections, writes to the new primary within five seconds, and never again to the
// old one, even when that responds again and the new one is down.
func TestFrozenPrimary(t *testing.T) {
	onlyForRelease(t, "a load that takes long")
	t.Parallel()
	primary, standby, database := startPair(t)
	s := start(t, onDatabase(database))
	key := loadKey(t, database)
	c := newClient(t, s, key)
	var warm sync.WaitGroup // fills the pool
	for range 32 {
		c := newClient(t, s, key)
		warm.Go(func() {
			for range 5 {
				c.try("POST", "/v1/pets", newPetBody("before", 1, "sold"))
			}
		})
	}
	warm.Wait()
	put := func(name string) bool {
		a, err := c.try("PUT", "/v1/categories/7", fmt.Sprintf(`{"name":%q}`, name))
		return err == nil && a.status/100 == 2
	}
	// Without its standby, the old primary would wait in every commit: an operator
	// may have turned that off.
	primary.Set(t, "synchronous_standby_names", "")
	primary.Freeze()
	if put("while frozen") {
		t.Fatal("a write succeeded although the primary is frozen")
	}
	slowest := watchAlive(t, s)
	standby.Promote(t)
	promoted := time.Now()
	eventually(t, time.Minute, "writes succeed again", func() bool { return put("after") })
	took := time.Since(promoted)
	busy := slowest()
	t.Logf("writes succeed again after %v", took)
	if took > 5*time.Second+10*busy {
		t.Errorf("the first write after the promotion took %v, want at most 5s, with a machine that takes up to %v for anything", took, busy)
	}

	primary.Thaw()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := primary.Exec(ctx, "store", "INSERT INTO categories (id, name) VALUES (8, 'accepts writes')"); err != nil {
		t.Fatalf("the old primary doesn't accept writes, so the test proves nothing: %v", err)
	}
	for range 50 {
		if !put("new primary") {
			t.Error("a write to the new primary failed")
		}
	}
	standby.Stop(t)
	for i := range 20 {
		if put(fmt.Sprint("nobody ", i)) {
			t.Fatal("a write succeeded while the new primary was down: it went to the old one")
		}
	}
	standby.Restart(t)
	eventually(t, time.Minute, "writes succeed again", func() bool { return put("new primary, restarted") })
	if err := primary.Exec(ctx, "store", "DO $$ BEGIN IF EXISTS (SELECT FROM categories WHERE id = 7 AND name <> 'while frozen') THEN RAISE 'written to'; END IF; END $$"); err != nil {
		t.Errorf("the old primary: %v", err)
	}
}
