package api

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/fair"
)

// getInventory serves GET /v1/store/inventory.
func (s *Server) getInventory(w http.ResponseWriter, r *request) error {
	of, err := parseInventoryQuery(r.URL.RawQuery)
	if err != nil {
		return err
	}
	inventory, age, err := s.inventories.get(r.Context(), of)
	if err != nil {
		return err
	}
	setHeader(w, "Age", strconv.FormatInt(int64(age/time.Second), 10))
	return writeResource(w, r, http.StatusOK, inventory)
}

// parseInventoryQuery reads which pets to count.
func parseInventoryQuery(rawQuery string) (of counted, err error) {
	params, err := url.ParseQuery(rawQuery)
	if err != nil {
		return of, malformedQuery()
	}
	values, ok := params["categoryId"]
	if !ok {
		return counted{all: true}, nil
	}
	if of.category, ok = parseInt64(values[0]); !ok || len(values) > 1 {
		return of, animalstore.Errorf(animalstore.InvalidParameter, "categoryId must be a 64-bit integer, given once")
	}
	return of, nil
}

// Inventory returns the number of pets in the store by status, at most ten seconds old.
func (s *Server) Inventory(ctx context.Context) (animalstore.Inventory, error) {
	inventory, _, err := s.inventories.get(ctx, counted{all: true})
	return inventory, err
}

const (
	maxInventoryAge = 10 * time.Second
	// maxInventories bounds the memory for counts, because callers may ask for any number
	// of categories.
	maxInventories = 10_000
	// A count reads a range of ids at a time, for about countWork, and then pauses for as
	// long, but at most countPause. So it takes about half of one processor, and others
	// don't wait for it. On a busy machine, where a read takes longer, it neither pauses
	// longer nor reads less than countSize ids, because it must end in time.
	countSize  = 20_000
	maxSize    = 16 * countSize // bounds the first read of a dense range after a sparse one
	countWork  = 2 * time.Millisecond
	countPause = 2 * time.Millisecond
)

// counted is what is counted: all pets, or those of a category.
type counted struct {
	all      bool
	category int64
}

// count is a finished count.
type count struct {
	animalstore.Inventory
	err    error
	began  time.Time
	number int64
}

// inventories keeps counts of pets and makes new ones: one at a time, and of the same
// pets at most one in maxInventoryAge.
type inventories struct {
	db    db.Inventory
	now   func() time.Time
	turns *fair.Turns // for the one count that may run; callers take turns

	mu     sync.Mutex
	kept   map[counted]count
	order  []counted // of the counts by their numbers, the last one at its end
	number int64     // of the last count
}

func newInventories(d db.Inventory, now func() time.Time) *inventories {
	return &inventories{db: d, now: now, turns: fair.NewTurns(1, 0), kept: map[counted]count{}}
}

// get returns a count and its age, which is the time since it began.
func (i *inventories) get(ctx context.Context, of counted) (animalstore.Inventory, time.Duration, error) {
	c, last := i.find(of)
	if !i.usable(c) {
		var err error
		if c, err = i.renew(ctx, of, last); err != nil {
			return animalstore.Inventory{}, 0, err
		}
	}
	return c.Inventory, max(0, i.now().Sub(c.began)), c.err
}

// renew waits for its turn and counts, unless another request has counted since the count
// with the number last. If that failed, this one would too.
func (i *inventories) renew(ctx context.Context, of counted, last int64) (count, error) {
	caller := fair.CallerOf(ctx)
	if err := i.turns.Take(ctx, caller); err != nil {
		return count{}, err
	}
	if c, _ := i.find(of); i.usable(c) || c.err != nil && c.number > last {
		i.turns.Done(caller)
		return c, nil
	}
	done := make(chan count, 1)
	go func() { // continues if the caller leaves, because others wait for it
		defer i.turns.Done(caller)
		c := count{began: i.now()}
		c.Inventory, c.err = i.count(of)
		i.keep(of, &c)
		done <- c
	}()
	select {
	case c := <-done:
		return c, nil
	case <-ctx.Done():
		return count{}, ctx.Err()
	}
}

// find returns the count that is kept, if any, and the number of the last count of all.
func (i *inventories) find(of counted) (count, int64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.kept[of], i.number
}

// usable reports whether a count may still be returned.
func (i *inventories) usable(c count) bool {
	return c.number > 0 && c.err == nil && i.now().Sub(c.began) <= maxInventoryAge
}

// keep keeps a count for other requests.
func (i *inventories) keep(of counted, c *count) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.number++
	c.number = i.number
	i.kept[of] = *c
	i.order = append(i.order, of)
	if len(i.order) <= maxInventories {
		return
	}
	oldest := i.order[0]
	i.order = i.order[1:]
	if i.kept[oldest].number == i.number-maxInventories { // it wasn't counted again
		delete(i.kept, oldest)
	}
}

// count counts pets, in small steps.
func (i *inventories) count(of counted) (sum animalstore.Inventory, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), maxInventoryAge)
	defer cancel()
	q := db.CountQuery{From: 1, Size: countSize}
	if !of.all {
		q.CategoryID = &of.category
	}
	for {
		began := time.Now()
		part, next, err := i.db.CountPets(ctx, q)
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return animalstore.Inventory{}, err
		}
		sum = sum.Plus(part)
		if next == 0 {
			return sum, nil
		}
		took := time.Since(began)
		q.From, q.Size = next, nextSize(q.Size, took)
		time.Sleep(min(took, countPause))
	}
}

// nextSize returns how many ids to read next. Few of them may be pets of the category.
func nextSize(size int64, took time.Duration) int64 {
	switch {
	case took < countWork/2:
		return min(2*size, maxSize)
	case took > 2*countWork:
		return max(size/2, countSize)
	}
	return size
}
