package ratelimit_test

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/ratelimit"
	"animalstore/internal/ratelimit/limittest"
)

func TestMemory(t *testing.T) {
	limittest.Run(t, func(testing.TB) limittest.Subject {
		s := &memorySubject{store: newShelf(), now: time.UnixMilli(0)}
		s.start()
		return s
	})
}

// memorySubject is a Memory that can be ended and started again.
type memorySubject struct {
	*ratelimit.Memory
	store *shelf
	now   time.Time
}

func (s *memorySubject) start() {
	s.Memory = ratelimit.NewMemory(s.store, func() time.Time { return s.now }, slog.New(slog.DiscardHandler))
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

// shelf is a Store in memory, which can be made to fail.
type shelf struct {
	mu      sync.Mutex
	states  map[int64]animalstore.LimitState
	loads   int
	batches []int // how many states each save had
	loadErr error
	saveErr error
	usage   []animalstore.Usage
}

func newShelf() *shelf { return &shelf{states: make(map[int64]animalstore.LimitState)} }

func (s *shelf) LimitState(_ context.Context, keyID int64) (animalstore.LimitState, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loads++
	return s.states[keyID], s.loadErr
}

func (s *shelf) SaveLimitStates(_ context.Context, states []animalstore.KeyLimitState) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.saveErr != nil {
		return s.saveErr
	}
	s.batches = append(s.batches, len(states))
	for _, st := range states {
		if !older(st.LimitState, s.states[st.KeyID]) {
			s.states[st.KeyID] = st.LimitState
		}
	}
	return nil
}

// older reports whether a database would rather keep o than replace it by s.
func older(s, o animalstore.LimitState) bool {
	return cmp.Or(cmp.Compare(s.BannedAt, o.BannedAt), cmp.Compare(s.Day.End, o.Day.End), cmp.Compare(s.Day.Used, o.Day.Used)) < 0
}

// SaveUsage makes the shelf a [ratelimit.UsageStore].
func (s *shelf) SaveUsage(_ context.Context, usage []animalstore.Usage) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.usage = append(s.usage, usage...)
	return s.saveErr
}

// Usage tells what was saved, hour by hour and server by server.
func (s *shelf) Usage(_ context.Context, keyID int64, since animalstore.Time) ([]animalstore.Usage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var hours []animalstore.Usage
	for _, u := range s.usage {
		if u.KeyID == keyID && !u.Hour.Before(since.Time) {
			hours = append(hours, u)
		}
	}
	return hours, s.loadErr
}

// fail makes the shelf fail from now on, or work again.
func (s *shelf) fail(load, save error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loadErr, s.saveErr = load, save
}

// state is what is saved of a key.
func (s *shelf) state(keyID int64) animalstore.LimitState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.states[keyID]
}

// loaded is how often a state was asked for.
func (s *shelf) loaded() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.loads
}

// total is how many requests are saved of all keys.
func (s *shelf) total() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var n int64
	for _, state := range s.states {
		n += state.Day.Used
	}
	return n
}
