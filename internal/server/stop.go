package server

import (
	"context"
	"errors"
	"time"

	"animalstore/internal/db"
	"animalstore/internal/db/postgres"
)

// A server stops within 20 seconds, even if its database hangs: requests in progress
// and saving the counters share stopTimeout, and closing the database gets
// closeTimeout.
const (
	stopTimeout    = 16 * time.Second
	closeTimeout   = 2 * time.Second
	saveRetryDelay = 50 * time.Millisecond
)

var errDatabaseTimeout = errors.New("timed out waiting for the database")

// deadline is when the server must be finished with everything but closing the
// database. The first call sets it.
func (s *Server) deadline() time.Time {
	if s.stopBy.IsZero() {
		s.stopBy = time.Now().Add(stopTimeout)
	}
	return s.stopBy
}

// stopAndSave stops the background work, which saves the counters once more. If another
// process has locked the database, it tries again until the deadline.
func (s *Server) stopAndSave(stop func() error) func() error {
	return func() error {
		err := waitUntil(s.deadline(), stop)
		if err == nil {
			err = s.saveBy(s.deadline())
		}
		if err != nil {
			s.cfg.Log.Error("limits and usage could not be saved at shutdown: the latest counts are lost", "err", err)
		}
		return nil
	}
}

func (s *Server) saveBy(deadline time.Time) error {
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	for {
		err := s.Save(ctx)
		// PostgreSQL may stay unreachable, so there is no retry.
		if !errors.Is(err, db.ErrUnavailable) || postgres.Is(s.cfg.Database) || time.Until(deadline) < saveRetryDelay {
			return err
		}
		time.Sleep(saveRetryDelay)
	}
}

// waitUntil calls f and waits for it until the deadline.
func waitUntil(deadline time.Time, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		return errDatabaseTimeout
	}
}
