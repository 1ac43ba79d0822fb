package server

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A server stops within 20 seconds after its shutdown delay, even if its database hangs: requests in progress,
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

// delayShutdown waits until load balancers have noticed that the server is about to stop. It
// returns earlier if the operator doesn't want to wait, or with the error if serving fails.
func (s *Server) delayShutdown(failed <-chan error) error {
	s.cfg.Log.Info("shutting down after a delay: /readyz is 503, everything else is still served", "delay", s.cfg.ShutdownDelay)
	s.handler.Leave()
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.ShutdownDelay)
	defer cancel()
	if s.cfg.SkipDelay != nil {
		var stop context.CancelFunc
		ctx, stop = s.cfg.SkipDelay(ctx)
		defer stop()
	}
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return nil
	}
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
