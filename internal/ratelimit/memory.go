package ratelimit

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"animalstore"
	"animalstore/internal/db"
)

const (
	// memoryShards divides the keys so that dropping idle ones, a shard at a time, never
	// stops requests for long. A sync.Map wouldn't stop them either, but a million keys
	// would take 262 MiB instead of less than 200.
	memoryShards = 64
	// saveEvery is well below a second, because we promise that a killed process
	// loses at most its last second.
	saveEvery = 500 * time.Millisecond
	saveBatch = 500
	// idleFor is how long an unused key stays in memory. After that, its state is
	// only in the store.
	idleFor = 2 * time.Minute
)

// Memory is the [Limiter] of a single process. It reads a key's counters from the
// store at the key's first request, and saves them twice a second.
type Memory struct {
	store Store
	now   func() time.Time
	log   *slog.Logger
	shard [memoryShards]shard

	dirtyMu sync.Mutex
	dirty   []*entry // changed since they were last saved
}

type shard struct {
	mu   sync.RWMutex
	keys map[int64]*entry
}

// entry is one key's counters.
type entry struct {
	mu     sync.Mutex
	keyID  int64
	used   int64 // Unix milliseconds of the last use
	loaded bool
	dirty  bool // is in Memory.dirty
	gone   bool // was dropped from its shard: look it up again
	state  db.LimitState
	// dayShortened says that the clock shortened the day since it was last saved.
	dayShortened bool

	// Used only by the Memory of a Redis.
	gap        gap
	unreported bool // is in Redis.reports
}

// NewMemory returns a Memory. It saves nothing until Run is called.
func NewMemory(store Store, now func() time.Time, log *slog.Logger) *Memory {
	m := &Memory{store: store, now: now, log: log}
	for i := range m.shard {
		m.shard[i].keys = make(map[int64]*entry)
	}
	return m
}

// Take implements [Limiter].
func (m *Memory) Take(ctx context.Context, key *animalstore.Key) (Decision, error) {
	return m.take(ctx, key, nil)
}

// take also calls note, unless it is nil, with the key's counters, locked.
func (m *Memory) take(ctx context.Context, key *animalstore.Key, note func(*entry)) (Decision, error) {
	e, err := m.acquire(ctx, key)
	if err != nil {
		return Decision{}, err
	}
	d := decide(&e.state, e.used, key)
	m.markDirty(e)
	if note != nil {
		note(e)
	}
	state := e.state
	e.mu.Unlock()
	if d.BannedNow {
		_ = saveNow(ctx, m.store, db.KeyLimitState{KeyID: key.ID, LimitState: state})
	}
	return d, nil
}

const saveNowTimeout = time.Second

// saveNow saves a state before the response is sent, such as one with a new ban, so
// that every server and the operator see it at once. If saving fails, the next Save
// includes it.
func saveNow(ctx context.Context, store Store, state db.KeyLimitState) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveNowTimeout)
	defer cancel()
	return store.SaveLimitStates(ctx, []db.KeyLimitState{state})
}

// Status implements [Limiter].
func (m *Memory) Status(ctx context.Context, key *animalstore.Key) (Status, error) {
	e, err := m.acquire(ctx, key)
	if err != nil {
		return Status{}, err
	}
	defer e.mu.Unlock()
	return status(e.state, e.used, key), nil
}

// acquire returns the key's counters, locked and as of now.
func (m *Memory) acquire(ctx context.Context, key *animalstore.Key) (*entry, error) {
	e := m.lock(key.ID)
	defer func() {
		if !e.loaded { // after an error or a panic: the key's next request would wait forever
			e.mu.Unlock()
		}
	}()
	if !e.loaded {
		state, err := m.store.LimitState(ctx, key.ID)
		if err != nil {
			return nil, err
		}
		e.state, e.loaded = state, true
	}
	// Reading the clock under the lock keeps the times of successive requests in order.
	e.used = m.now().UnixMilli()
	followed, dayShortened := followClock(&e.state, e.used)
	e.dayShortened = e.dayShortened || dayShortened
	if lifted := liftBan(&e.state, key); followed || lifted {
		m.markDirty(e)
	}
	return e, nil
}

// lock returns the key's counters, locked. They may not be loaded yet.
func (m *Memory) lock(keyID int64) *entry {
	for {
		e := m.entry(keyID)
		e.mu.Lock()
		if !e.gone {
			return e
		}
		e.mu.Unlock()
	}
}

// markDirty queues an entry, which is locked, to be saved.
func (m *Memory) markDirty(e *entry) {
	if e.dirty {
		return
	}
	e.dirty = true
	m.dirtyMu.Lock()
	m.dirty = append(m.dirty, e)
	m.dirtyMu.Unlock()
}

func (m *Memory) entry(keyID int64) *entry {
	s := &m.shard[uint64(keyID)%memoryShards]
	s.mu.RLock()
	e := s.keys[keyID]
	s.mu.RUnlock()
	if e != nil {
		return e
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e = s.keys[keyID]; e == nil {
		e = &entry{keyID: keyID}
		s.keys[keyID] = e
	}
	return e
}

// Run saves changes twice a second and drops idle keys until ctx ends. It saves
// once more before it returns.
func (m *Memory) Run(ctx context.Context) {
	next := 0
	saveRegularly(ctx, m.log, "limits", m.Save, func() {
		m.dropIdle(&m.shard[next%memoryShards])
		next++
	})
}

// saveRegularly calls save and then tidy at every tick until ctx ends, then save
// once more. It logs when saving starts to fail and when it works again.
func saveRegularly(ctx context.Context, log *slog.Logger, what string, save func(context.Context) error, tidy func()) {
	tick := time.NewTicker(saveEvery)
	defer tick.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			if err := save(context.WithoutCancel(ctx)); err != nil {
				log.Warn(what+" could not be saved yet at shutdown", "err", err)
			}
			return
		case <-tick.C:
		}
		err := save(ctx)
		switch {
		case err != nil && !failing && ctx.Err() == nil:
			log.Warn(what+" cannot be saved right now: counting continues in memory", "err", err)
		case err == nil && failing:
			log.Info(what + " can be saved again")
		}
		failing = err != nil
		tidy()
	}
}

// Save writes every change since the last Save to the store. Changes it couldn't
// write stay queued for the next Save.
func (m *Memory) Save(ctx context.Context) error {
	m.dirtyMu.Lock()
	dirty := m.dirty
	m.dirty = make([]*entry, 0, len(dirty))
	m.dirtyMu.Unlock()
	// Databases store keys with consecutive ids next to each other, so that a batch in
	// this order changes few pages.
	slices.SortFunc(dirty, func(a, b *entry) int { return cmp.Compare(a.keyID, b.keyID) })

	batch := make([]db.KeyLimitState, 0, min(saveBatch, len(dirty)))
	for len(dirty) > 0 {
		n := min(saveBatch, len(dirty))
		batch = batch[:0]
		for _, e := range dirty[:n] {
			e.mu.Lock()
			batch = append(batch, db.KeyLimitState{KeyID: e.keyID, LimitState: e.state, DayShortened: e.dayShortened})
			e.dirty, e.dayShortened = false, false
			e.mu.Unlock()
		}
		if err := m.store.SaveLimitStates(ctx, batch); err != nil {
			m.keepDirty(batch, dirty[:n], dirty[n:])
			return err
		}
		dirty = dirty[n:]
	}
	return nil
}

// keepDirty queues entries again that weren't saved: the ones tried in batch, unless a
// Take already queued them, and the untried ones.
func (m *Memory) keepDirty(batch []db.KeyLimitState, tried, untried []*entry) {
	m.dirtyMu.Lock()
	m.dirty = append(m.dirty, untried...)
	m.dirtyMu.Unlock()
	for i, e := range tried {
		e.mu.Lock()
		e.dayShortened = e.dayShortened || batch[i].DayShortened
		m.markDirty(e)
		e.mu.Unlock()
	}
}

// dropIdle removes a shard's keys that are saved and weren't used recently.
func (m *Memory) dropIdle(s *shard) {
	idle := m.now().Add(-idleFor).UnixMilli()
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, e := range s.keys {
		if !e.mu.TryLock() {
			continue // in use
		}
		if !e.dirty && !e.unreported && e.used < idle {
			e.gone = true
			delete(s.keys, id)
		}
		e.mu.Unlock()
	}
}

// Tracked returns how many keys are in memory.
func (m *Memory) Tracked() (n int) {
	for i := range m.shard {
		s := &m.shard[i]
		s.mu.RLock()
		n += len(s.keys)
		s.mu.RUnlock()
	}
	return n
}
