package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"animalstore/internal/fair"
)

var errRefused = errors.New("refused")

// TestBatcher: calls that arrive while a batch runs share the next one, which begins after
// them. It begins while a slow batch runs, up to maxBatches at once.
func TestBatcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type running struct {
			reqs []string
			end  chan error
		}
		begun := make(chan running, 10)
		b := batcher[string, string]{timeout: time.Minute, run: func(_ context.Context, reqs []string) ([]string, error) {
			end := make(chan error)
			begun <- running{reqs, end}
			results := slices.Clone(reqs)
			for i := range results {
				results[i] += "!"
			}
			return results, <-end
		}}
		var calls sync.WaitGroup
		call := func(req string, want error) {
			calls.Go(func() {
				got, err := b.do(t.Context(), req)
				if !errors.Is(err, want) || err == nil && got != req+"!" {
					t.Errorf("%s: got %q, %v, want %v", req, got, err, want)
				}
			})
			synctest.Wait()
		}
		begins := func(want ...string) chan error {
			t.Helper()
			synctest.Wait()
			if len(begun) != 1 {
				t.Fatalf("%d batches began, want one of %q", len(begun), want)
			}
			got := <-begun
			if !slices.Equal(got.reqs, want) {
				t.Fatalf("a batch of %q began, want %q", got.reqs, want)
			}
			return got.end
		}
		call("first", nil)
		first := begins("first")
		call("a", nil)
		call("b", nil)
		call("a", nil)
		first <- nil
		second := begins("a", "b", "a")
		second <- nil
		synctest.Wait()

		var ends []chan error
		for i := range maxBatches {
			req := fmt.Sprint("slow ", i)
			call(req, errRefused)
			ends = append(ends, begins(req))
			time.Sleep(2 * slowBatch)
		}
		call("late", nil)
		if len(begun) > 0 {
			t.Fatal("more batches run than may at once")
		}
		for _, end := range ends {
			end <- errRefused
		}
		begins("late") <- nil
		calls.Wait()
		synctest.Wait()
		if b.running != 0 || !b.waiting.Empty() {
			t.Errorf("%d batches run and %d calls wait afterwards, want none", b.running, b.waiting.Len())
		}
	})
}

// TestBatcherGivesUp: a caller that gives up before its batch begins isn't part of it.
// Later it learns that the batch has begun. A panic is returned to every caller.
func TestBatcherGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, end := make(chan []string, 10), make(chan func())
		b := batcher[string, string]{timeout: time.Minute, run: func(_ context.Context, reqs []string) ([]string, error) {
			begun <- reqs
			(<-end)()
			return reqs, nil
		}}
		var calls sync.WaitGroup
		call := func(ctx context.Context, req string, check func(error) bool) {
			calls.Go(func() {
				if got, err := b.do(ctx, req); !check(err) || err == nil && got != req {
					t.Errorf("%s: got %q, %v", req, got, err)
				}
			})
			synctest.Wait()
		}
		succeeds := func(err error) bool { return err == nil }
		early, leaveEarly := context.WithCancel(t.Context())
		late, leaveLate := context.WithCancel(t.Context())
		call(t.Context(), "first", succeeds)
		<-begun
		call(early, "early", func(err error) bool { return errors.Is(err, context.Canceled) && !errors.Is(err, errBatchBegun) })
		call(late, "late", func(err error) bool { return errors.Is(err, context.Canceled) && errors.Is(err, errBatchBegun) })
		call(t.Context(), "patient", succeeds)
		leaveEarly()
		synctest.Wait()
		end <- func() {}
		if got, want := <-begun, []string{"late", "patient"}; !slices.Equal(got, want) {
			t.Errorf("a batch of %q began, want %q", got, want)
		}
		leaveLate()
		synctest.Wait()
		end <- func() {}
		calls.Wait()

		call(t.Context(), "shared", func(err error) bool { return err != nil && strings.Contains(err.Error(), "no such status") })
		end <- func() { panic("no such status") }
		calls.Wait()
		synctest.Wait()
		if b.running != 0 {
			t.Errorf("%d batches run afterwards, want none", b.running)
		}
	})
}

// TestBatchertimeout: a call waits no longer than its timeout, for the batches before it
// and for its own together.
func TestBatcherTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		b := batcher[string, string]{timeout: 2 * time.Second, run: func(_ context.Context, reqs []string) ([]string, error) {
			<-end
			return reqs, nil
		}}
		var calls sync.WaitGroup
		for n := range maxBatches + 1 {
			calls.Go(func() {
				begun := time.Now()
				_, err := b.do(t.Context(), "slow")
				if took := time.Since(begun); took != 2*time.Second || !errors.Is(err, errBatchLate) {
					t.Errorf("call %d: got %v after %v, want %v after 2s", n, err, took, errBatchLate)
				}
				if running := n < maxBatches; errors.Is(err, errBatchBegun) != running {
					t.Errorf("call %d: got %v, want that it has begun: %t", n, err, running)
				}
			})
			time.Sleep(2 * slowBatch) // so that each begins a batch, until there are enough
		}
		calls.Wait()
		close(end)
	})
}

// TestBatcherTakesTurns: if more calls wait than fit in a batch, those of a caller with few
// don't wait for all of another's.
func TestBatcherTakesTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, end := make(chan []string, 10), make(chan struct{})
		b := batcher[string, string]{timeout: time.Minute, run: func(_ context.Context, reqs []string) ([]string, error) {
			begun <- reqs
			<-end
			return reqs, nil
		}}
		var calls sync.WaitGroup
		call := func(caller int64, req string) {
			calls.Go(func() {
				if _, err := b.do(fair.WithCaller(t.Context(), fair.Caller{Kind: fair.Key, ID: caller}), req); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		call(1, "first")
		<-begun
		for range 3 * maxBatch {
			call(1, "many")
		}
		call(2, "few")
		close(end)
		calls.Wait()
		if next := <-begun; !slices.Contains(next, "few") || len(next) != maxBatch {
			t.Errorf("the next batch has %d calls, without that of the other caller", len(next))
		}
	})
}
