// Package events follows the feed of events on behalf of all followers, the requests and
// streams that wait for the next event.
//
// One goroutine per process, [Hub.Run], looks for new events, and keeps the latest in
// memory. Followers wait until it wakes them: however many there are, an event is read
// and encoded once, and a waiting follower holds no connection to the database.
package events

import (
	"context"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"animalstore"
)

// Store is where events are stored.
type Store interface {
	// PublishEvents makes committed events visible to readers and returns the id
	// of the newest.
	PublishEvents(ctx context.Context) (newest int64, err error)
	// ReadEvents returns visible events with higher ids than after, oldest first.
	// Empty types and an empty subject stand for all. last is the id of the last
	// event that it looked at: it looks at a limited number.
	ReadEvents(ctx context.Context, after int64, types []animalstore.EventType, subject string, limit int) (events []animalstore.Event, last int64, err error)
	// ReadEventsBefore returns visible events with lower ids than before, newest first.
	// last is 0 after the oldest event that is kept.
	ReadEventsBefore(ctx context.Context, before int64, types []animalstore.EventType, subject string, limit int) (events []animalstore.Event, last int64, err error)
}

const (
	// defaultLookEvery is how often the hub looks for events of other processes.
	defaultLookEvery = 250 * time.Millisecond
	// spacing is the least time between two looks. Many writes share one look, so
	// following costs writers little, and is still not noticeable.
	spacing = 10 * time.Millisecond
	// Readers are woken in groups, with a pause in between. A thousand at once would
	// make every other request wait until they have all sent what they got.
	groupSize  = 16
	groupPause = time.Millisecond
	// lookTimeout bounds one look, in case the database doesn't respond.
	lookTimeout = 5 * time.Second
	// linger is how long events stay in memory after the last follower has left. One
	// that sends a request after the other is away in between.
	linger = 10 * time.Second

	maxKept      = 4096    // events in memory
	maxKeptBytes = 4 << 20 // their data, without what it takes to encode them
	readBatch    = 500
	publishBatch = 100 // after as many, there may be more
)

// Hub keeps the latest events in memory. Create one with [NewHub].
type Hub struct {
	// LookEvery replaces how often Run looks for events of other processes. Set it
	// before Run.
	LookEvery time.Duration

	store Store
	log   *slog.Logger
	wake  chan struct{} // has one element if there may be new events

	mu sync.Mutex
	// kept are the events with ids above base, up to newest, in order. Elements never
	// change, so that parts of it can be used without the lock.
	kept         []*Message
	keptBytes    int
	base, newest int64
	groups       []*group // of readers; there is at least one
	readers      int
	lastReader   time.Time // when the last reader left
	looked       time.Time // when the latest look succeeded
	failing      bool
	watch        func() // see Watch
}

// group are readers who are woken at the same time.
type group struct {
	readers int
	changed chan struct{} // closed and replaced when newest changes
}

func newGroup() *group { return &group{changed: make(chan struct{})} }

// NewHub returns a hub, which does nothing until [Hub.Run] is called.
func NewHub(store Store, log *slog.Logger) *Hub {
	return &Hub{
		LookEvery: defaultLookEvery,
		store:     store,
		log:       log,
		wake:      make(chan struct{}, 1),
		base:      math.MaxInt64, // nothing is known yet
		newest:    -1,
		groups:    []*group{newGroup()},
		looked:    time.Now(),
	}
}

// Notify says that there may be new events. It never blocks.
func (h *Hub) Notify() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// Watch has f called after each look that found new events or was asked for by
// [Hub.Notify]. Unlike a reader, it doesn't make the hub read events. f must not block.
func (h *Hub) Watch(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watch = f
}

func (h *Hub) watched() (newest int64, f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.newest, h.watch
}

// Run looks for events until ctx ends.
func (h *Hub) Run(ctx context.Context) {
	tick := time.NewTicker(h.LookEvery)
	defer tick.Stop()
	for notified := false; ; {
		before, _ := h.watched()
		h.report(ctx, h.look(ctx))
		if newest, f := h.watched(); f != nil && (notified || newest != before) {
			f()
		}
		time.Sleep(spacing)
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

// look publishes events and, if somebody follows, reads them.
func (h *Hub) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	newest, err := h.store.PublishEvents(ctx)
	if err != nil {
		return err
	}
	for {
		have, following := h.state()
		if newest-have >= publishBatch && have >= 0 {
			h.Notify() // there may be more than were published at once
		}
		if !following || newest < have || newest-have > maxKept {
			h.wakeReaders(h.jump(newest))
			return nil
		}
		if newest == have {
			h.keep(nil, newest)
			return nil
		}
		events, last, err := h.store.ReadEvents(ctx, have, nil, "", readBatch)
		if err != nil {
			return err
		}
		if last <= have { // a bug in the store, which would make this loop endless
			h.wakeReaders(h.jump(newest))
			return nil
		}
		h.wakeReaders(h.keep(events, last))
		newest = max(newest, last)
	}
}

func (h *Hub) state() (newest int64, following bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.newest, h.newest >= 0 && (h.readers > 0 || time.Since(h.lastReader) < linger)
}

// jump forgets all events up to newest. Followers read what they missed from the
// database. It reports whether newest changed.
func (h *Hub) jump(newest int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.looked = time.Now()
	changed := newest != h.newest
	h.kept, h.keptBytes, h.base, h.newest = nil, 0, newest, newest
	return changed
}

// keep adds the events that follow newest, up to last. It reports whether newest changed.
func (h *Hub) keep(events []animalstore.Event, last int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.looked = time.Now()
	h.kept = newMessages(h.kept, events)
	for i := range events {
		h.keptBytes += len(events[i].Data)
	}
	for len(h.kept) > maxKept || h.keptBytes > maxKeptBytes && len(h.kept) > 1 {
		h.base = h.kept[0].ID
		h.keptBytes -= len(h.kept[0].Data)
		h.kept = h.kept[1:]
	}
	changed := last != h.newest
	h.newest = last
	return changed
}

// wakeReaders wakes all readers, one group after the other.
func (h *Hub) wakeReaders(changed bool) {
	for i := 0; changed && h.wakeGroup(i); i++ {
		time.Sleep(groupPause)
	}
}

// wakeGroup wakes a group, and reports whether there is another one behind it.
func (h *Hub) wakeGroup(i int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if i < len(h.groups) {
		close(h.groups[i].changed)
		h.groups[i].changed = make(chan struct{})
	}
	return i+1 < len(h.groups)
}

// join adds a reader to a group that has room.
func (h *Hub) join() *group {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.readers++
	for _, g := range h.groups {
		if g.readers < groupSize {
			g.readers++
			return g
		}
	}
	g := newGroup()
	g.readers++
	h.groups = append(h.groups, g)
	return g
}

// leave removes a reader from its group.
func (h *Hub) leave(g *group) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.readers--
	h.lastReader = time.Now()
	g.readers--
	for last := len(h.groups) - 1; last > 0 && h.groups[last].readers == 0; last-- {
		h.groups = h.groups[:last]
	}
}

// since returns the events after a position that are in memory, and the newest id.
// ok is false if that isn't all of them.
func (h *Hub) since(position int64) (messages []*Message, newest int64, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if position < h.base || position > h.newest {
		return nil, 0, false
	}
	i, _ := slices.BinarySearchFunc(h.kept, position+1, func(m *Message, id int64) int { return int(min(max(m.ID-id, -1), 1)) })
	return h.kept[i:len(h.kept):len(h.kept)], h.newest, true
}

// beyond returns a channel that is closed when there may be events after a position, at
// the time when the group is woken.
func (h *Hub) beyond(position int64, g *group) <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if position < h.newest {
		return closed
	}
	return g.changed
}

var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// report logs when looking for events begins to fail, and when it works again.
func (h *Hub) report(ctx context.Context, err error) {
	h.mu.Lock()
	was := h.failing
	h.failing = err != nil && ctx.Err() == nil
	is := h.failing
	h.mu.Unlock()
	switch {
	case is && !was:
		h.log.Warn("cannot look for events: followers get none until this works again", "err", err)
	case was && !is && err == nil:
		h.log.Info("events can be followed again")
	}
}

// Stats describe a hub.
type Stats struct {
	Newest int64         // the id of the newest event; 0 if there is none
	Kept   int           // events in memory
	Age    time.Duration // of the latest look that succeeded
}

// Stats returns the statistics of h.
func (h *Hub) Stats() Stats {
	h.mu.Lock()
	defer h.mu.Unlock()
	return Stats{max(h.newest, 0), len(h.kept), time.Since(h.looked)}
}
