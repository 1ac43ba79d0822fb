package server

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A server stops within 20 seconds, even if its database hangs: requests in progress,
// the background work and saving the counters share stopTimeout, and closing the database gets
// closeTimeout.
const (
	stopTimeout  = 16 * time.Second
	closeTimeout = 2 * time.Second
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

// closeInTime makes Close call stop, and wait for it until the deadline: a read may hang.
func (s *Server) closeInTime(what string, stop func() error) {
	s.closers = append(s.closers, func() error {
		if err := waitUntil(s.deadline(), stop); err != nil {
			return fmt.Errorf("stop %s: %w", what, err)
		}
		return nil
	})
}

// stopAndSave stops the background work and saves the counters.
func (s *Server) stopAndSave(stop func() error) func() error {
	return func() error {
		ctx, cancel := context.WithDeadline(context.Background(), s.deadline())
		defer cancel()
		err := waitUntil(s.deadline(), stop)
		if err == nil {
			err = s.Save(ctx)
		}
		if err != nil {
			s.cfg.Log.Error("limits and usage could not be saved at shutdown: the latest counts are lost", "err", err)
		}
		return nil
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
