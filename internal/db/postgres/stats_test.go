//go:build unix

package postgres

import (
	"testing"
	"time"

	"animalstore/internal/db/postgres/pgtest"
)

// TestSize: the size is found out in the background, and not again before its time.
func TestSize(t *testing.T) {
	d := mustOpen(t, pgtest.Shared(t).NewDatabase(t, ""), Options{Timeout: patient})
	known := func(want string) (bytes int64) {
		t.Helper()
		for deadline := time.Now().Add(patient); ; time.Sleep(10 * time.Millisecond) {
			if bytes = d.Stats().Bytes; bytes > 1<<20 {
				return bytes
			}
			if time.Now().After(deadline) {
				t.Fatalf("the size is %d, want %s", bytes, want)
			}
		}
	}
	if got := d.Stats().Bytes; got != 0 {
		t.Errorf("the size is %d before anybody has asked, want 0", got)
	}
	small := known("that of an empty database")
	asked := d.sampled.asked
	if _, err := d.pool.Exec(t.Context(), "CREATE TABLE large AS SELECT repeat('x', 1000) FROM generate_series(1, 5000)"); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		d.Stats()
	}
	if d.sampled.asked != asked {
		t.Error("the size was asked for again at once")
	}
	d.sampled.mu.Lock()
	d.sampled.asked, d.sampled.bytes = time.Now().Add(-sizeEvery), 0
	d.sampled.mu.Unlock()
	if large := known("more than before"); large < small+4<<20 {
		t.Errorf("the size is %d after a table of 5 MB was added, and was %d before", large, small)
	}
}
