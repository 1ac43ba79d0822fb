// Package events follows the feed of events on behalf of all readers: the
// requests and streams that wait for the next event.
//
// One goroutine per process, [Hub.Run], polls for new events and keeps the
// latest in memory. It wakes the waiting readers. However many there are, an
// event is read once and encoded at most three times, and a waiting reader holds no
// database connection.
package events

import (
	"context"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"animalstore"
	"animalstore/internal/db"
)

// Store is the part of [db.DB] that the hub uses.
type Store interface {
	PublishEvents(ctx context.Context) (newest int64, err error)
	Events(ctx context.Context, q db.EventQuery) (events []animalstore.Event, last int64, err error)
	KeyNames(ctx context.Context, ids []int64) (map[int64]string, error)
}

const (
	// defaultPollEvery is how often the hub polls for events of other
	// processes.
	defaultPollEvery = 250 * time.Millisecond
	// minPollInterval is the minimum time between two polls. Many writes share one
	// poll, so following costs writers little, and nobody notices the delay.
	minPollInterval = 10 * time.Millisecond
	// wakeInterval is the time between two readers that were woken, on average. A
	// thousand that continue at once would make every other request wait until all of
	// them have sent their events.
	wakeInterval = time.Millisecond / 16
	// pollTimeout bounds one poll, in case the database doesn't respond.
	pollTimeout = 5 * time.Second
	// keepFor is how long events stay in memory after the last reader has
	// been closed. A client that sends requests in sequence has no reader
	// between them.
	keepFor = 10 * time.Second

	maxKept      = 4096    // events in memory
	maxKeptBytes = 4 << 20 // their data, not counting the encoded form
	readBatch    = 500
	fullPoll     = 100 // a poll that finds this many; there may be more
)

// Hub keeps the latest events in memory. Create one with [NewHub].
type Hub struct {
	// PollEvery is how often Run polls for events of other processes. Set it
	// before Run.
	PollEvery time.Duration

	store Store
	log   *slog.Logger
	wake  chan struct{} // has one element if there may be new events
	names keyNames

	mu sync.Mutex
	// kept are the events with ids above base, up to newest, in order. Elements
	// never change, so parts of the slice can be used without the lock.
	kept         []*shared
	keptBytes    int
	base, newest int64
	changed      chan struct{} // closed and replaced when newest changes
	readers      int
	lastReader   time.Time // when the last reader was closed
	polled       time.Time // when the last successful poll ended
	failing      bool
	onPoll       func() // see OnPoll
}

// NewHub returns a hub, which does nothing until [Hub.Run] is called.
func NewHub(store Store, log *slog.Logger) *Hub {
	return &Hub{
		PollEvery: defaultPollEvery,
		store:     store,
		log:       log,
		wake:      make(chan struct{}, 1),
		base:      math.MaxInt64, // nothing is known yet
		newest:    -1,
		changed:   make(chan struct{}),
		polled:    time.Now(),
	}
}

// Notify tells the hub that there may be new events. It never blocks.
func (h *Hub) Notify() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// OnPoll sets f to be called after each poll that found new events or was
// requested with [Hub.Notify]. Unlike a reader, it doesn't make the hub read
// events. f must not block.
func (h *Hub) OnPoll(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.onPoll = f
}

func (h *Hub) newestAndCallback() (newest int64, onPoll func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.newest, h.onPoll
}

// Run polls for events until ctx ends.
func (h *Hub) Run(ctx context.Context) {
	tick := time.NewTicker(h.PollEvery)
	defer tick.Stop()
	for notified := false; ; {
		before, _ := h.newestAndCallback()
		h.report(ctx, h.poll(ctx))
		if newest, onPoll := h.newestAndCallback(); onPoll != nil && (notified || newest != before) {
			onPoll()
		}
		time.Sleep(minPollInterval)
		notified = false
		select {
		case <-h.wake:
			notified = true
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// poll publishes events and, if there are readers, reads them.
func (h *Hub) poll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	newest, err := h.store.PublishEvents(ctx)
	if err != nil {
		return err
	}
	for {
		have, following := h.state()
		if newest-have >= fullPoll && have >= 0 {
			h.Notify()
		}
		if !following || newest < have || newest-have > maxKept {
			h.skipTo(newest)
			return nil
		}
		if newest == have {
			h.keep(nil, newest)
			return nil
		}
		events, last, err := h.store.Events(ctx, db.EventQuery{After: have, Limit: readBatch})
		if err != nil {
			return err
		}
		if last <= have { // a bug in the store; the loop would never end
			h.skipTo(newest)
			return nil
		}
		h.keep(events, last)
		newest = max(newest, last)
	}
}

func (h *Hub) state() (newest int64, following bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.newest, h.newest >= 0 && (h.readers > 0 || time.Since(h.lastReader) < keepFor)
}

// skipTo drops all events up to newest from memory. Readers get the ones they
// missed from the database.
func (h *Hub) skipTo(newest int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.kept, h.keptBytes, h.base = nil, 0, newest
	h.setNewest(newest)
}

// keep adds the events that follow newest, up to last.
func (h *Hub) keep(events []animalstore.Event, last int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.kept = newShared(h.kept, events)
	for i := range events {
		h.keptBytes += len(events[i].Data)
	}
	for len(h.kept) > maxKept || h.keptBytes > maxKeptBytes && len(h.kept) > 1 {
		h.base = h.kept[0].ID
		h.keptBytes -= len(h.kept[0].Data)
		h.kept = h.kept[1:]
	}
	h.setNewest(last)
}

// setNewest records a poll, and wakes all readers if newest changed. The caller holds mu.
func (h *Hub) setNewest(newest int64) {
	h.polled = time.Now()
	if newest != h.newest {
		h.newest = newest
		close(h.changed)
		h.changed = make(chan struct{})
	}
}

func (h *Hub) addReader() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.readers++
}

func (h *Hub) removeReader() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.readers--
	h.lastReader = time.Now()
}

// wakePause is how long a reader that was woken waits before it continues.
func (h *Hub) wakePause() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return rand.N(time.Duration(h.readers) * wakeInterval)
}

// keptAfter returns the events in memory after a position, and the newest id. ok is
// false if some of the events after the position aren't in memory.
func (h *Hub) keptAfter(position int64) (kept []*shared, newest int64, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if position < h.base || position > h.newest {
		return nil, 0, false
	}
	i, _ := slices.BinarySearchFunc(h.kept, position+1, func(s *shared, id int64) int { return int(min(max(s.ID-id, -1), 1)) })
	return h.kept[i:len(h.kept):len(h.kept)], h.newest, true
}

// changedAfter returns a channel that is closed when there may be events after the
// position.
func (h *Hub) changedAfter(position int64) <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if position < h.newest {
		return closed
	}
	return h.changed
}

var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// report logs when polling starts to fail and when it works again.
func (h *Hub) report(ctx context.Context, err error) {
	h.mu.Lock()
	was := h.failing
	h.failing = err != nil && ctx.Err() == nil
	is := h.failing
	h.mu.Unlock()
	switch {
	case is && !was:
		h.log.Warn("cannot poll for events: followers get none until this works again", "err", err)
	case was && !is && err == nil:
		h.log.Info("events can be followed again")
	}
}

// Stats describe a hub.
type Stats struct {
	Newest int64         // the id of the newest event; 0 if there is none
	Kept   int           // events in memory
	Age    time.Duration // since the last successful poll
}

// Stats returns the statistics of h.
func (h *Hub) Stats() Stats {
	h.mu.Lock()
	defer h.mu.Unlock()
	return Stats{max(h.newest, 0), len(h.kept), time.Since(h.polled)}
}
