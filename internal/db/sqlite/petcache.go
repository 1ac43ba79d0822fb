package sqlite

import (
	"sync/atomic"

	"animalstore"
)

const (
	petSlots      = 1 << 12
	petsInSlot    = 4 // with names of the longest kind kept, 4 MB of pets in all
	maxCachedName = 128
)

// petCache remembers pets that were asked for by their id, because reading
// one from the file costs as much as everything else in a request.
//
// What it returns is as fresh as what the file holds. Before a write can be seen,
// it marks the slots of the pets it changes with the generation of its commit,
// and a pet counts only if it was read in a later one. So whoever starts to
// read after somebody saw the write finds the mark; and what was read before the
// write does not count, even if it is stored here afterwards.
//
// It has a fixed number of slots, with room for some pets each, of which a
// newcomer replaces the oldest. So it is bounded and needs no lock. Ids follow each
// other, so they spread evenly.
type petCache struct {
	slots [petSlots]petSlot
}

type petSlot struct {
	changed atomic.Uint64
	pets    [petsInSlot]atomic.Pointer[cachedPet] // newest first
}

type cachedPet struct {
	animalstore.Pet
	generation uint64 // it was read in
}

func (c *petCache) slot(id int64) *petSlot { return &c.slots[uint64(id)%petSlots] }

func (c *petCache) get(id int64) (pet animalstore.Pet, ok bool) {
	slot := c.slot(id)
	for i := range slot.pets {
		if p := slot.pets[i].Load(); p != nil && p.ID == id && p.generation > slot.changed.Load() {
			return p.Pet, true
		}
	}
	return pet, false
}

// put keeps a pet. The generation is that from before it was read.
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

// changes marks a pet as changed by the transaction that the writer is about
// to commit. It is called by the writer alone, before it commits.
func (d *DB) changes(id int64) {
	if d.pets != nil {
		d.pets.slot(id).changed.Store(d.writer.generation.Load() + 1)
	}
}
