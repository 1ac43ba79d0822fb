package sqlite

import (
	"sync/atomic"

	"animalstore"
)

const (
	petSlots      = 1 << 12
	petsInSlot    = 4 // at most 4 MB of pets in all, with names of maxCachedName
	maxCachedName = 128
)

// petCache caches pets that were read by id, because reading one from the file costs
// as much as everything else in a request.
//
// It never returns a stale pet. Before a write becomes visible, it marks the slots of
// the pets that it changes with the generation of its commit, and a cached pet is
// valid only if it was read in a later generation. So a read that starts after
// somebody saw the write finds the mark, and a pet that was read before the write is
// invalid even if it is cached afterwards.
//
// It has a fixed number of slots with a few pets each, where a new pet replaces the
// oldest. So its size is bounded and it needs no lock. Ids are consecutive, so they
// spread evenly over the slots.
type petCache struct {
	slots        [petSlots]petSlot
	hits, misses atomic.Int64
}

type petSlot struct {
	changed atomic.Uint64
	pets    [petsInSlot]atomic.Pointer[cachedPet] // newest first
}

type cachedPet struct {
	animalstore.Pet
	generation uint64 // in which it was read
}

func (c *petCache) slot(id int64) *petSlot { return &c.slots[uint64(id)%petSlots] }

func (c *petCache) get(id int64) (pet animalstore.Pet, ok bool) {
	slot := c.slot(id)
	for i := range slot.pets {
		if p := slot.pets[i].Load(); p != nil && p.ID == id && p.generation > slot.changed.Load() {
			c.hits.Add(1)
			return p.Pet, true
		}
	}
	c.misses.Add(1)
	return pet, false
}

// put caches a pet. generation is the one just before it was read.
func (c *petCache) put(pet animalstore.Pet, generation uint64) {
	if len(pet.Name) > maxCachedName {
		return
	}
	slot := c.slot(pet.ID)
	moved := &cachedPet{pet, generation}
	for i := range slot.pets {
		if moved = slot.pets[i].Swap(moved); moved == nil || moved.ID == pet.ID {
			return
		}
	}
}

// markChanged marks a pet as changed by the current write transaction. It must be
// called inside that transaction.
func (d *DB) markChanged(id int64) {
	if d.pets != nil {
		d.pets.slot(id).changed.Store(d.writer.generation.Load() + 1)
	}
}
