package api

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"animalstore"
	"animalstore/internal/db"
)

// failureLog collects the requests that get an error response and stores them once a
// second. No request waits for it. What can't be stored is lost.
type failureLog struct {
	db db.DB

	mu     sync.Mutex
	second int64 // in Unix time
	// seen are the failures of that second: a program that sends the same mistake in a
	// loop would replace everything else that is kept of its key.
	seen    map[failureKind]bool
	pending []animalstore.Failure
	lost    int64 // since the start
}

type failureKind struct {
	keyID int64
	code  animalstore.Code
}

const (
	saveFailuresEvery   = time.Second
	saveFailuresTimeout = 3 * time.Second
	// maxPendingFailures limits how much an instance stores in a second, and its memory
	// while the database doesn't respond.
	maxPendingFailures = 1000
)

func newFailureLog(store db.DB) *failureLog {
	return &failureLog{db: store, seen: map[failureKind]bool{}}
}

// add collects a failure, unless there was one of its key and code in the same second.
func (l *failureLog) add(f animalstore.Failure) {
	kind := failureKind{f.KeyID, f.Code}
	second := f.Time.Unix()
	l.mu.Lock()
	defer l.mu.Unlock()
	if second != l.second {
		clear(l.seen)
		l.second = second
	}
	switch {
	case l.seen[kind]:
	case len(l.pending) == maxPendingFailures:
		l.lost++
	default:
		l.seen[kind] = true
		l.pending = append(l.pending, f)
	}
}

// save stores what was collected.
func (l *failureLog) save(ctx context.Context) error {
	l.mu.Lock()
	pending := l.pending
	l.pending = nil
	l.mu.Unlock()
	if len(pending) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, saveFailuresTimeout)
	defer cancel()
	err := l.db.AddFailures(ctx, pending, db.KeptFailures)
	if err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.lost += int64(len(pending))
	}
	return err
}

// lostSoFar returns how many failures couldn't be stored.
func (l *failureLog) lostSoFar() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}

// SaveFailures stores the failed requests that were collected since the last call.
func (s *Server) SaveFailures(ctx context.Context) error { return s.failures.save(ctx) }

// RunFailures calls SaveFailures every second until ctx ends, and then once more.
func (s *Server) RunFailures(ctx context.Context) {
	tick := time.NewTicker(saveFailuresEvery)
	defer tick.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			if err := s.SaveFailures(context.WithoutCancel(ctx)); err != nil {
				s.Log.Warn("the last failed requests could not be stored at shutdown", "err", err)
			}
			return
		case <-tick.C:
		}
		err := s.SaveFailures(context.WithoutCancel(ctx))
		switch {
		case err != nil && !failing:
			s.Log.Warn("failed requests cannot be stored right now: GET /v1/failures will lack them", "err", err)
		case err == nil && failing:
			s.Log.Info("failed requests can be stored again")
		}
		failing = err != nil
	}
}

// recordFailure collects a request that gets an error response, unless it has no valid key,
// or failed because the database is gone or full: then storing it would fail too.
func (s *Server) recordFailure(r *request, code animalstore.Code, message string, err error) {
	if r.key == nil || errors.Is(err, db.ErrFull) || errors.Is(err, db.ErrUnavailable) || errors.Is(err, db.ErrOutcomeUnknown) {
		return
	}
	f := animalstore.Failure{
		Time:       animalstore.At(s.Now()),
		RequestID:  r.id,
		KeyID:      r.key.ID,
		Method:     knownMethod(r.Method),
		Status:     code.Status(),
		Code:       code,
		Message:    message,
		DurationMs: time.Since(r.began).Milliseconds(),
	}
	if res, _, _ := s.resource(r); res != nil {
		path := storedPath(res.pattern, r.URL.Path)
		f.Route, f.Path = &res.pattern, &path
	} else if r.pattern == assistantPath {
		f.Route, f.Path = new(assistantPath), new(assistantPath)
	}
	s.failures.add(f)
}

// storedPath returns a path as it is stored with a failure. A parameter that isn't an
// integer is replaced with its name in the pattern: it may be a secret in the wrong place.
func storedPath(pattern, path string) string {
	segments := strings.Split(pattern, "/")
	for i, value := range strings.Split(path, "/") {
		if _, ok := animalstore.ParseInteger(value); ok && strings.HasPrefix(segments[i], "{") {
			segments[i] = value
		}
	}
	return strings.Join(segments, "/")
}
