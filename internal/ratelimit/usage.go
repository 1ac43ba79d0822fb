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

// UsageStore stores usage.
type UsageStore interface {
	// SaveUsage adds to the stored counts: all of them or none.
	SaveUsage(ctx context.Context, usage []db.KeyUsage) error
}

// Usage counts each key's admitted and refused requests by the hour, and when the
// key was last used. It saves in the background: a killed process loses at most its
// last second.
type Usage struct {
	store UsageStore
	now   func() time.Time
	log   *slog.Logger
	// saving allows one Save at a time, so that every count is stored when Save
	// returns.
	saving chan struct{}

	mu     sync.Mutex
	counts map[usageHour]usageCount // since the last Save
}

type usageHour struct{ keyID, hour int64 }

type usageCount struct{ admitted, refused, lastUsed int64 }

// NewUsage returns a Usage. It saves nothing until Run is called.
func NewUsage(store UsageStore, now func() time.Time, log *slog.Logger) *Usage {
	return &Usage{store: store, now: now, log: log, saving: make(chan struct{}, 1), counts: map[usageHour]usageCount{}}
}

// Record counts one request of a key.
func (u *Usage) Record(keyID int64, admitted bool) {
	now := u.now().UnixMilli()
	c := usageCount{lastUsed: now}
	if admitted {
		c.admitted = 1
	} else {
		c.refused = 1
	}
	u.add(usageHour{keyID, now - now%time.Hour.Milliseconds()}, c)
}

func (u *Usage) add(hour usageHour, c usageCount) {
	u.mu.Lock()
	defer u.mu.Unlock()
	sum := u.counts[hour]
	u.counts[hour] = usageCount{sum.admitted + c.admitted, sum.refused + c.refused, max(sum.lastUsed, c.lastUsed)}
}

// Run saves twice a second until ctx ends, and once more before it returns.
func (u *Usage) Run(ctx context.Context) {
	saveRegularly(ctx, u.log, "usage", u.Save, func() {})
}

// Save writes every count since the last Save to the store. It writes in batches, which
// lets other writes in between, by ascending id, so that a batch changes few pages of the
// store. Counts it couldn't write stay for the next Save.
func (u *Usage) Save(ctx context.Context) error {
	select {
	case u.saving <- struct{}{}:
		defer func() { <-u.saving }()
	case <-ctx.Done():
		return ctx.Err()
	}
	usage := u.take()
	for len(usage) > 0 {
		n := min(saveBatch, len(usage))
		if err := u.store.SaveUsage(ctx, usage[:n]); err != nil {
			u.putBack(usage)
			return err
		}
		usage = usage[n:]
	}
	return nil
}

// Read returns a key's hours since a time, newest first: what stored returns, and what
// isn't saved yet. It writes nothing, so a reader costs no commit. Nothing is saved
// at the same time, so no request is counted twice.
func (u *Usage) Read(ctx context.Context, stored func(context.Context, int64, animalstore.Time) ([]animalstore.Usage, error), keyID int64, since animalstore.Time) ([]animalstore.Usage, error) {
	select {
	case u.saving <- struct{}{}:
		defer func() { <-u.saving }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	hours, err := stored(ctx, keyID, since)
	if err != nil {
		return nil, err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for hour, c := range u.counts {
		if hour.keyID != keyID || hour.hour < since.Milli() {
			continue
		}
		i := slices.IndexFunc(hours, func(h animalstore.Usage) bool { return h.Hour.Milli() == hour.hour })
		if i < 0 {
			i = len(hours)
			hours = append(hours, animalstore.Usage{Hour: animalstore.AtMilli(hour.hour)})
		}
		hours[i].Admitted += c.admitted
		hours[i].Refused += c.refused
	}
	slices.SortFunc(hours, func(a, b animalstore.Usage) int { return cmp.Compare(b.Hour.Milli(), a.Hour.Milli()) })
	return hours, nil
}

// take removes and returns all counts, by ascending id. Requests don't wait for more than
// the first step.
func (u *Usage) take() []db.KeyUsage {
	u.mu.Lock()
	counts := u.counts
	u.counts = make(map[usageHour]usageCount)
	u.mu.Unlock()
	usage := make([]db.KeyUsage, 0, len(counts))
	for hour, c := range counts {
		usage = append(usage, db.KeyUsage{
			KeyID: hour.keyID, Hour: animalstore.AtMilli(hour.hour), Admitted: c.admitted, Refused: c.refused, LastUsed: animalstore.AtMilli(c.lastUsed),
		})
	}
	slices.SortFunc(usage, func(a, b db.KeyUsage) int { return cmp.Compare(a.KeyID, b.KeyID) })
	return usage
}

func (u *Usage) putBack(usage []db.KeyUsage) {
	for _, c := range usage {
		u.add(usageHour{c.KeyID, c.Hour.Milli()}, usageCount{c.Admitted, c.Refused, c.LastUsed.Milli()})
	}
}
