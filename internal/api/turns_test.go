package api

import (
	"context"
	"errors"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"animalstore"
	"animalstore/internal/fair"
)

// TestUploadsInProgress: a key has two uploads in progress at most, and all keys together
// eight.
func TestUploadsInProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUploads()
		ctx, cancel := context.WithCancel(t.Context())
		inProgress := map[int64]int{}
		var ends []func()
		for _, key := range []int64{1, 1, 1, 2, 2, 2, 3, 3, 4, 5, 5} {
			go func() {
				if end, err := u.begin(fair.WithCaller(ctx, fair.Caller{Kind: fair.Key, ID: key})); err == nil {
					inProgress[key]++
					ends = append(ends, end)
				}
			}()
			synctest.Wait()
		}
		total := 0
		for key, n := range inProgress {
			if total += n; n > 2 {
				t.Errorf("key %d has %d uploads in progress, want 2 at most", key, n)
			}
		}
		if total != 8 || inProgress[5] != 1 {
			t.Errorf("in progress: %v, want 8, one of them of key 5", inProgress)
		}
		cancel()
		synctest.Wait()
		for _, end := range ends {
			end()
		}
		if len(u.byKey) != 0 {
			t.Errorf("%d keys are kept after their uploads, want none", len(u.byKey))
		}
	})
}

// TestDecodingTakesTurns: one picture is decoded at a time, and a key that waits with two
// gets one of them decoded, then another key gets its own. A picture may wait 30 s for its
// turn, and has the handler's time after that.
func TestDecodingTakesTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUploads()
		if err := u.decoder.Acquire(t.Context(), fair.Caller{}); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		var mu sync.Mutex
		var order []int64
		for _, key := range []int64{1, 1, 2} {
			go func() {
				r := &request{Request: httptest.NewRequestWithContext(t.Context(), "POST", "/", nil), key: &animalstore.Key{ID: key}, timeout: requestTimeout}
				done, err := u.waitForDecoder(r)
				if err != nil {
					if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != decoderWait {
						t.Errorf("got %v after %v, want the deadline after %v", err, time.Since(began), decoderWait)
					}
					return
				}
				mu.Lock()
				order = append(order, key)
				mu.Unlock()
				if end, ok := r.Context().Deadline(); !ok || time.Until(end) != requestTimeout {
					t.Errorf("%v are left for the work, want %v", time.Until(end), requestTimeout)
				}
				time.Sleep(2 * time.Second)
				done()
			}()
			synctest.Wait()
		}
		time.Sleep(decoderWait - 3*time.Second)
		mu.Lock()
		if len(order) > 0 {
			t.Errorf("pictures of %d were decoded while another was", order)
		}
		mu.Unlock()
		u.decoder.Release(fair.Caller{})
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if want := []int64{1, 2}; !slices.Equal(order, want) {
			t.Errorf("decoded in the order of keys %d, want %d", order, want)
		}
	})
}
