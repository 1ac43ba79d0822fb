package ratelimit

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"animalstore"
)

const usageShards = 64

// UsageStore is where usage is kept.
type UsageStore interface {
	// SaveUsage adds to what is known of these keys: all of it or nothing.
	SaveUsage(ctx context.Context, usage []animalstore.Usage) error
}

// Usage counts what became of each key's requests, hour by hour, and when it
// was last used. It is written behind: a killed process forgets at most its
// last second.
type Usage struct {
	store UsageStore
	now   func() time.Time
	log   *slog.Logger
	shard [usageShards]usageShard
	save  sync.Mutex // one Save at a time, so that a reader who saved sees all
}

type usageShard struct {
	mu     sync.Mutex
	counts map[usageHour]usageCount
}

type usageHour struct{ keyID, hour int64 }

type usageCount struct{ admitted, refused, lastUsed int64 }

// NewUsage makes a Usage. Run has to be called for it to save anything.
func NewUsage(store UsageStore, now func() time.Time, log *slog.Logger) *Usage {
	u := &Usage{store: store, now: now, log: log}
	for i := range u.shard {
		u.shard[i].counts = make(map[usageHour]usageCount)
	}
	return u
}

// Record counts one request of a key.
func (u *Usage) Record(keyID int64, admitted bool) {
	now := u.now().UnixMilli()
	k := usageHour{keyID, now - now%time.Hour.Milliseconds()}
	s := &u.shard[uint64(keyID)%usageShards]
	s.mu.Lock()
	c := s.counts[k]
	if admitted {
		c.admitted++
	} else {
		c.refused++
	}
	c.lastUsed = max(c.lastUsed, now)
	s.counts[k] = c
	s.mu.Unlock()
}

// Run saves twice a second until ctx ends, and a last time before it returns.
func (u *Usage) Run(ctx context.Context) {
	saveRegularly(ctx, u.log, "usage", u.Save, func() {})
}

// Save writes every count since the last Save to the store. What it could not
// write is kept for the next.
func (u *Usage) Save(ctx context.Context) error {
	u.save.Lock()
	defer u.save.Unlock()
	for i := range u.shard {
		if err := u.saveShard(ctx, &u.shard[i]); err != nil {
			return err
		}
	}
	return nil
}

func (u *Usage) saveShard(ctx context.Context, s *usageShard) error {
	s.mu.Lock()
	counts := s.counts
	if len(counts) > 0 {
		s.counts = make(map[usageHour]usageCount, len(counts))
	}
	s.mu.Unlock()
	if len(counts) == 0 {
		return nil
	}
	batch := make([]animalstore.Usage, 0, len(counts))
	for k, c := range counts {
		batch = append(batch, animalstore.Usage{
			KeyID: k.keyID, Hour: animalstore.AtMilli(k.hour), Admitted: c.admitted, Refused: c.refused, LastUsed: animalstore.AtMilli(c.lastUsed),
		})
	}
	err := u.store.SaveUsage(ctx, batch)
	if err != nil {
		s.mu.Lock()
		for k, c := range counts {
			later := s.counts[k]
			s.counts[k] = usageCount{c.admitted + later.admitted, c.refused + later.refused, max(c.lastUsed, later.lastUsed)}
		}
		s.mu.Unlock()
	}
	return err
}
