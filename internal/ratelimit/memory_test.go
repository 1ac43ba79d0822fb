package ratelimit_test

import (
	"cmp"
	"context"
	"sync"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/ratelimit"
	"animalstore/internal/ratelimit/limittest"
	"animalstore/internal/testenv"
)

func TestMemory(t *testing.T) {
	limittest.Run(t, func(testing.TB) limittest.Subject {
		s := &memorySubject{store: newMemoryStore(), now: time.UnixMilli(0)}
		s.start()
		return s
	}, testenv.Count(1000, 100_000))
}

// memorySubject is a Memory that can be stopped and started again.
type memorySubject struct {
	*ratelimit.Memory
	store *memoryStore
	now   time.Time
}

func (s *memorySubject) start() {
	s.Memory = ratelimit.NewMemory(s.store, func() time.Time { return s.now }, discard)
}

func (s *memorySubject) SetClock(now time.Time) { s.now = now }

func (s *memorySubject) Save() error { return s.Memory.Save(context.Background()) }

func (s *memorySubject) Restart() error {
	err := s.Save()
	s.start()
	return err
}

func (s *memorySubject) Kill() error {
	s.start()
	return nil
}

func (s *memorySubject) KillForgets() bool { return true }

// memoryStore is a Store in memory that can be made to fail.
type memoryStore struct {
	mu      sync.Mutex
	states  map[int64]db.LimitState
	loads   int
	batches []int // the number of states in each save
	failAt  int   // the save that fails; 0 for none
	saves   int
	loadErr error
	saveErr error
	usage   []db.KeyUsage
}

func newMemoryStore() *memoryStore {
	return &memoryStore{states: make(map[int64]db.LimitState)}
}

func (s *memoryStore) LimitState(_ context.Context, keyID int64) (db.LimitState, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loads++
	return s.states[keyID], s.loadErr
}

func (s *memoryStore) SaveLimitStates(_ context.Context, states []db.KeyLimitState) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.saves++; s.saves == s.failAt {
		return errDisk
	}
	if s.saveErr != nil {
		return s.saveErr
	}
	s.batches = append(s.batches, len(states))
	for _, st := range states {
		if !older(st, s.states[st.KeyID]) {
			s.states[st.KeyID] = st.LimitState
		}
	}
	return nil
}

// older reports whether a database would keep o instead of replacing it with s.
func older(s db.KeyLimitState, o db.LimitState) bool {
	return s.BannedAt < o.BannedAt || s.BannedAt == o.BannedAt && !s.DayShortened &&
		cmp.Or(cmp.Compare(s.Day.End, o.Day.End), cmp.Compare(s.Day.Used, o.Day.Used)) < 0
}

// SaveUsage makes the memoryStore a [ratelimit.UsageStore].
func (s *memoryStore) SaveUsage(_ context.Context, usage []db.KeyUsage) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.saveErr != nil {
		return s.saveErr
	}
	s.usage = append(s.usage, usage...)
	return nil
}

// Usage returns what was saved by hour and server.
func (s *memoryStore) Usage(_ context.Context, keyID int64, since animalstore.Time) ([]animalstore.Usage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var hours []animalstore.Usage
	for _, u := range s.usage {
		if u.KeyID == keyID && !u.Hour.Before(since.Time) {
			hours = append(hours, animalstore.Usage{Hour: u.Hour, Admitted: u.Admitted, Refused: u.Refused})
		}
	}
	return hours, s.loadErr
}

// fail makes the memoryStore fail from now on, or work again.
func (s *memoryStore) fail(load, save error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loadErr, s.saveErr = load, save
}

// state is the saved state of a key.
func (s *memoryStore) state(keyID int64) db.LimitState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.states[keyID]
}

// loaded is how often a state was read.
func (s *memoryStore) loaded() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.loads
}

// total is the number of saved requests of all keys.
func (s *memoryStore) total() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var n int64
	for _, state := range s.states {
		n += state.Day.Used
	}
	return n
}
