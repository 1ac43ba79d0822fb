package sqlite

import (
	"fmt"
	"sync"
	"testing"

	"animalstore/internal/fair"
	"animalstore/internal/testenv"

	"zombiezen.com/go/sqlite"
)

// TestWritersTakeTurns: a caller with one write doesn't wait for all that another one
// has queued before.
func TestWritersTakeTurns(t *testing.T) {
	d := newStore(t)
	d.writer.maxBatch = 4
	release := hold(t, d)
	var order []int64 // only the writer appends to it
	var wg sync.WaitGroup
	for i := range 21 {
		caller := int64(1)
		if i == 20 {
			caller = 2
		}
		wg.Go(func() {
			err := d.writer.do(fair.WithCaller(t.Context(), fair.Caller{Kind: fair.Key, ID: caller}), func(*sqlite.Conn) error {
				order = append(order, caller)
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
		queued(t, d, i+1)
	}
	release()
	wg.Wait()
	if len(order) != 21 || order[1] != 2 {
		t.Errorf("the writes are done in the order %v, want that of caller 2 in the second place", order)
	}
}

// TestReadersTakeTurns: a caller doesn't wait for all reads of another, and a key is
// looked up without waiting.
func TestReadersTakeTurns(t *testing.T) {
	d := newStore(t)
	var mu sync.Mutex
	var order []int64
	var wg sync.WaitGroup
	step := make(chan struct{})
	read := func(caller int64) {
		wg.Go(func() {
			err := d.read(fair.WithCaller(t.Context(), fair.Caller{Kind: fair.Key, ID: caller}), func(*sqlite.Conn) error {
				mu.Lock()
				order = append(order, caller)
				mu.Unlock()
				<-step
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	began := func(n int) {
		t.Helper()
		testenv.Eventually(t, fmt.Sprint(n, " reads begin"), func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(order) >= n
		})
	}
	wait := func(n int) {
		t.Helper()
		testenv.Eventually(t, fmt.Sprint(n, " reads wait"), func() bool { return d.slots.Waiting() >= n })
	}
	busy := d.nread - 1
	for range busy {
		read(1)
	}
	began(busy)
	if _, found, err := d.KeyByHash(t.Context(), [32]byte{1}); found || err != nil {
		t.Errorf("while all readers are busy: KeyByHash = %t, %v, want not found", found, err)
	}
	for range 20 { // they wait
		read(1)
	}
	wait(20)
	read(2)
	wait(21)
	step <- struct{}{}
	began(busy + 1)
	step <- struct{}{}
	began(busy + 2)
	if order[busy+1] != 2 {
		t.Errorf("reads began in the order %v, want that of caller 2 second of those that waited", order)
	}
	close(step)
	wg.Wait()
}
