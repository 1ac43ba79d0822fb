package sqlite

import (
	"encoding/binary"
	"sync/atomic"

	"animalstore"
)

const (
	petSlots      = 1 << 14
	petsInSlot    = 4
	maxCachedName = 30 // bytes; few names are longer
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
// It has a fixed number of slots with a few pets each, so its size is fixed, 4.5 MiB, and
// it needs no lock. A pet can be in either of two slots: with one, a fifth of the slots
// would have more pets than they hold when the cache is three quarters full, and clients
// that read their pets in turn would never find those pets.
type petCache struct {
	pets         [petSlots][petsInSlot]cachedPet // first, so that each pet is in one cache line
	slots        [petSlots]petSlot
	hits, misses atomic.Int64
}

type petSlot struct {
	changed atomic.Uint64 // the generation in which one of the pets that belong here changed
	evicted atomic.Uint64 // how many pets that belong here replaced another
	// The lower half of each pet's id, or 0. It says which pet to look at: those are a
	// cache line each.
	ids [petsInSlot]atomic.Uint32
}

// cachedPet is a pet without pointers, which the garbage collector would have to follow.
// Its version is odd while somebody writes the other words. A reader that finds another
// version afterwards than before may have read a mixture of two pets.
type cachedPet struct {
	version    atomic.Uint64
	id         atomic.Int64
	generation atomic.Uint64 // in which it was read
	categoryID atomic.Int64
	rest       [4]atomic.Uint64 // see packedPet
}

// packedPet is the status, the length of the name, and the name.
type packedPet [2 + maxCachedName]byte

// slotsOf returns the slots that a pet can be in. It belongs to the first one, whose mark
// says when it changed.
func slotsOf(id int64) [2]uint64 {
	own, other := uint64(id)%petSlots, uint64(id)*0x9e3779b97f4a7c15>>32%petSlots
	if other == own {
		other ^= 1
	}
	return [2]uint64{own, other}
}

func (c *petCache) get(id int64) (pet animalstore.Pet, ok bool) {
	slots := slotsOf(id)
	for _, slot := range slots {
		for i := range petsInSlot {
			if c.slots[slot].ids[i].Load() != uint32(id) {
				continue
			}
			pet, generation, ok := c.pets[slot][i].read(id)
			if ok && generation > c.slots[slots[0]].changed.Load() {
				c.hits.Add(1)
				return pet, true
			}
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
	slot, i := c.place(pet.ID)
	c.pets[slot][i].write(&pet, generation, &c.slots[slot].ids[i])
}

// place returns where to put a pet: where it is, where no pet is, or else in turn one of
// the places that it can be in.
func (c *petCache) place(id int64) (slot uint64, i int) {
	slots := slotsOf(id)
	for _, wanted := range [2]int64{id, 0} {
		for _, slot := range slots {
			for i := range petsInSlot {
				if c.slots[slot].ids[i].Load() == uint32(wanted) && c.pets[slot][i].id.Load() == wanted {
					return slot, i
				}
			}
		}
	}
	n := c.slots[slots[0]].evicted.Add(1)
	return slots[n%2], int(n / 2 % petsInSlot)
}

// read returns the pet, unless somebody is writing another one here.
func (p *cachedPet) read(id int64) (pet animalstore.Pet, generation uint64, ok bool) {
	version := p.version.Load()
	pet.ID, pet.CategoryID, generation = p.id.Load(), p.categoryID.Load(), p.generation.Load()
	var rest packedPet
	for i := range p.rest {
		binary.LittleEndian.PutUint64(rest[8*i:], p.rest[i].Load())
	}
	if version%2 != 0 || p.version.Load() != version || pet.ID != id {
		return pet, 0, false
	}
	pet.Status, pet.Name = statusAt(petStatuses, int64(rest[0])), string(rest[2:][:rest[1]])
	return pet, generation, true
}

// write replaces the pet and its id in the slot, unless somebody else is doing that.
func (p *cachedPet) write(pet *animalstore.Pet, generation uint64, id *atomic.Uint32) {
	var rest packedPet
	rest[0], rest[1] = byte(statusIndex(petStatuses, pet.Status)), byte(len(pet.Name))
	copy(rest[2:], pet.Name)
	version := p.version.Load()
	if version%2 != 0 || !p.version.CompareAndSwap(version, version+1) {
		return
	}
	id.Store(uint32(pet.ID))
	p.id.Store(pet.ID)
	p.generation.Store(generation)
	p.categoryID.Store(pet.CategoryID)
	for i := range p.rest {
		p.rest[i].Store(binary.LittleEndian.Uint64(rest[8*i:]))
	}
	p.version.Store(version + 2)
}

// markChanged marks a pet as changed by the current write transaction. It must be
// called inside that transaction.
func (d *DB) markChanged(id int64) {
	if d.pets != nil {
		d.pets.slots[slotsOf(id)[0]].changed.Store(d.writer.generation.Load() + 1)
	}
}
