package server

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"animalstore"
	"animalstore/internal/db"
)

// hangingDB is a database whose polls don't return, not even when their context ends.
type hangingDB struct {
	db.DB
	release chan struct{}
}

func (d hangingDB) PublishEvents(context.Context) (int64, error) {
	<-d.release
	return 0, context.Canceled
}

func (d hangingDB) WebhookWork(context.Context, animalstore.Time) (db.WebhookWork, error) {
	<-d.release
	return db.WebhookWork{}, context.Canceled
}

// TestStopWithHangingReads: a stop waits for a read that hangs, but not longer than it may.
func TestStopWithHangingReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s, _ := runInBubble(t, func(cfg *Config) {
			cfg.Hooks.NoBackground = false
			cfg.Hooks.WrapDB = func(d db.DB) db.DB { return hangingDB{d, release} }
		})
		synctest.Wait()
		began := time.Now()
		time.AfterFunc(time.Minute, func() { close(release) })
		s.stop()
		if err := s.wait(t); err != nil {
			t.Errorf("got %v, want no error", err)
		}
		if took, most := time.Since(began), stopTimeout+closeTimeout; took > most {
			t.Errorf("the server stopped after %v, want %v at most", took, most)
		}
		time.Sleep(2 * time.Minute) // a bubble waits for its goroutines: release those that hang
	})
}
