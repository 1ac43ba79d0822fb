package api

import (
	"context"
	"maps"
	"net/http"
	"strconv"
	"sync"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/fair"
)

// getInventory serves GET /v1/store/inventory.
func (s *Server) getInventory(w http.ResponseWriter, r *request) error {
	values, err := parseParams(r.URL.RawQuery)
	if err != nil {
		return err
	}
	q, err := animalstore.ParseInventoryQuery(values)
	if err != nil {
		return err
	}
	inventory, age, err := s.inventories.get(r.Context(), q)
	if err != nil {
		return err
	}
	setHeader(w, "Age", strconv.FormatInt(int64(age/time.Second), 10))
	return writeResource(w, r, http.StatusOK, inventory)
}

// Inventory returns the number of pets in the store by status, at most ten seconds old.
func (s *Server) Inventory(ctx context.Context) (animalstore.Inventory, error) {
	inventory, _, err := s.inventories.get(ctx, animalstore.InventoryQuery{})
	return inventory, err
}

// maxInventoryAge is how old a count may be, measured from its beginning.
const maxInventoryAge = 10 * time.Second

// count is a count in progress, or one of the last ten seconds.
type count struct {
	animalstore.Inventory
	err   error
	began time.Time
	done  chan struct{} // closed once the other fields are set
}

// inventories counts pets, one count at a time. Requests for the same pets within
// maxInventoryAge share a count.
type inventories struct {
	db   db.Inventory
	now  func() time.Time
	slot *fair.Semaphore // for counting

	mu     sync.Mutex
	counts map[string]*count // by the query
	made   int64
}

func newInventories(d db.Inventory, now func() time.Time) *inventories {
	return &inventories{db: d, now: now, slot: fair.NewSemaphore(1, 0), counts: map[string]*count{}}
}

// get returns a count and its age.
func (i *inventories) get(ctx context.Context, q animalstore.InventoryQuery) (animalstore.Inventory, time.Duration, error) {
	c := i.findOrBegin(ctx, q)
	select {
	case <-c.done:
		return c.Inventory, max(0, i.now().Sub(c.began)), c.err
	case <-ctx.Done():
		return animalstore.Inventory{}, 0, ctx.Err()
	}
}

func (i *inventories) findOrBegin(ctx context.Context, q animalstore.InventoryQuery) *count {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := i.now()
	maps.DeleteFunc(i.counts, func(_ string, c *count) bool {
		return isClosed(c.done) && (c.err != nil || now.Sub(c.began) > maxInventoryAge)
	})
	of := q.Values().Encode()
	c := i.counts[of]
	if c == nil {
		c = &count{done: make(chan struct{})}
		i.counts[of] = c
		go i.run(context.WithoutCancel(ctx), q, c) // others may wait for it
	}
	return c
}

// run makes a count when it is the caller's turn.
func (i *inventories) run(ctx context.Context, q animalstore.InventoryQuery, c *count) {
	defer close(c.done)
	caller := fair.CallerOf(ctx)
	if c.err = i.slot.Acquire(ctx, caller); c.err != nil {
		return
	}
	defer i.slot.Release(caller)
	c.began = i.now()
	c.Inventory, c.err = i.count(ctx, q)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.made++
}

func (i *inventories) count(ctx context.Context, q animalstore.InventoryQuery) (_ animalstore.Inventory, err error) {
	defer recoverError(&err)
	ctx, cancel := context.WithTimeout(ctx, maxInventoryAge)
	defer cancel()
	return i.db.CountPets(ctx, q.CategoryID)
}

func (i *inventories) countsMade() int64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.made
}
