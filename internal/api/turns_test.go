package api

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"animalstore/internal/photo"
	"animalstore/internal/photo/phototest"
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
				if end, err := u.begin(ctx, key); err == nil {
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
// gets one of them decoded, then another key gets its own.
func TestDecodingTakesTurns(t *testing.T) {
	picture := phototest.JPEG(phototest.Drawing(8, 8))
	header, err := photo.Inspect(picture, "image/jpeg")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		u := newUploads()
		if err := u.decoder.Acquire(t.Context(), 9); err != nil {
			t.Fatal(err)
		}
		var order []int64
		for _, key := range []int64{1, 1, 2} {
			go func() {
				begun := sync.OnceFunc(func() { order = append(order, key) })
				if _, err := u.process(watchedContext{t.Context(), begun}, key, picture, header); err != nil {
					t.Error(err)
				}
			}()
			synctest.Wait()
		}
		if len(order) > 0 {
			t.Errorf("pictures of %d were decoded while another was", order)
		}
		u.decoder.Release(9)
		synctest.Wait()
		if want := []int64{1, 2, 1}; !slices.Equal(order, want) {
			t.Errorf("decoded in the order of keys %d, want %d", order, want)
		}
	})
}

// watchedContext tells when it is first asked whether it has ended, which a decoder does.
type watchedContext struct {
	context.Context
	asked func()
}

func (c watchedContext) Err() error {
	c.asked()
	return c.Context.Err()
}
