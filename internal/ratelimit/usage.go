package ratelimit

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"animalstore"
)

const (
	usageShards = 64
	// neighbours is the size of a group of keys with consecutive ids, which databases
	// store next to each other. A group shares a shard, so that a saved batch changes
	// few pages.
	neighbours = 64
)

// UsageStore stores usage.
type UsageStore interface {
	// SaveUsage adds to the stored counts: all of them or none.
	SaveUsage(ctx context.Context, usage []animalstore.Usage) error
}

// Usage counts each key's admitted and refused requests by the hour, and when the
// key was last used. It saves in the background: a killed process loses at most its
// last second.
type Usage struct {
	store UsageStore
	now   func() time.Time
	log   *slog.Logger
	shard [usageShards]usageShard
	// saving allows one Save at a time, so that every count is stored when Save
	// returns.
	saving chan struct{}
}

type usageShard struct {
	mu     sync.Mutex
	counts []usageCount
	at     map[usageHour]int32 // the position of each count: adding to it takes one lookup
}

type usageHour struct{ keyID, hour int64 }

type usageCount struct {
	usageHour
	admitted, refused, lastUsed int64
}

// add adds to the counts of a shard, which is locked.
func (s *usageShard) add(c usageCount) {
	i, ok := s.at[c.usageHour]
	if !ok {
		s.at[c.usageHour] = int32(len(s.counts))
		s.counts = append(s.counts, c)
		return
	}
	sum := &s.counts[i]
	sum.admitted += c.admitted
	sum.refused += c.refused
	sum.lastUsed = max(sum.lastUsed, c.lastUsed)
}

// NewUsage returns a Usage. It saves nothing until Run is called.
func NewUsage(store UsageStore, now func() time.Time, log *slog.Logger) *Usage {
	u := &Usage{store: store, now: now, log: log, saving: make(chan struct{}, 1)}
	for i := range u.shard {
		u.shard[i].at = make(map[usageHour]int32)
	}
	return u
}

func (u *Usage) shardOf(keyID int64) *usageShard {
	return &u.shard[uint64(keyID)/neighbours%usageShards]
}

// Record counts one request of a key.
func (u *Usage) Record(keyID int64, admitted bool) {
	now := u.now().UnixMilli()
	c := usageCount{usageHour: usageHour{keyID, now - now%time.Hour.Milliseconds()}, lastUsed: now}
	if admitted {
		c.admitted = 1
	} else {
		c.refused = 1
	}
	s := u.shardOf(keyID)
	s.mu.Lock()
	s.add(c)
	s.mu.Unlock()
}

// Run saves twice a second until ctx ends, and once more before it returns.
func (u *Usage) Run(ctx context.Context) {
	saveRegularly(ctx, u.log, "usage", u.Save, func() {})
}

// Save writes every count since the last Save to the store. It writes in batches, which
// limits memory and lets other writes in between. Counts it couldn't write stay for the
// next Save.
func (u *Usage) Save(ctx context.Context) error {
	select {
	case u.saving <- struct{}{}:
		defer func() { <-u.saving }()
	case <-ctx.Done():
		return ctx.Err()
	}
	var counted []animalstore.Usage
	for i := range u.shard {
		counted = u.shard[i].take(counted)
		last := i == len(u.shard)-1
		for len(counted) >= saveBatch || last && len(counted) > 0 {
			n := min(saveBatch, len(counted))
			if err := u.store.SaveUsage(ctx, counted[:n]); err != nil {
				u.putBack(counted)
				return err
			}
			counted = append(counted[:0], counted[n:]...)
		}
	}
	return nil
}

// take moves the counts of a shard to the end of counted, by ascending id.
func (s *usageShard) take(counted []animalstore.Usage) []animalstore.Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(counted)
	for _, c := range s.counts {
		counted = append(counted, animalstore.Usage{
			KeyID: c.keyID, Hour: animalstore.AtMilli(c.hour), Admitted: c.admitted, Refused: c.refused, LastUsed: animalstore.AtMilli(c.lastUsed),
		})
	}
	s.counts = s.counts[:0]
	clear(s.at)
	slices.SortFunc(counted[before:], func(a, b animalstore.Usage) int { return cmp.Compare(a.KeyID, b.KeyID) })
	return counted
}

func (u *Usage) putBack(counted []animalstore.Usage) {
	for _, c := range counted {
		s := u.shardOf(c.KeyID)
		s.mu.Lock()
		s.add(usageCount{usageHour{c.KeyID, c.Hour.Milli()}, c.Admitted, c.Refused, c.LastUsed.Milli()})
		s.mu.Unlock()
	}
}
