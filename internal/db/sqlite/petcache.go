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
// It has a fixed number of slots with a few pets each, where a new pet replaces the
// oldest. So its size is fixed, a little over 4 MiB, and it needs no lock. Ids are
// consecutive, so they spread evenly over the slots.
type petCache struct {
	pets         [petSlots][petsInSlot]cachedPet // first, so that each pet is in one cache line
	slots        [petSlots]petSlot
	hits, misses atomic.Int64
}

type petSlot struct {
	changed atomic.Uint64
	puts    atomic.Uint64
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

func (c *petCache) slot(id int64) (*petSlot, *[petsInSlot]cachedPet) {
	i := uint64(id) % petSlots
	return &c.slots[i], &c.pets[i]
}

func (c *petCache) get(id int64) (pet animalstore.Pet, ok bool) {
	slot, pets := c.slot(id)
	for i := range pets {
		if pets[i].id.Load() != id {
			continue
		}
		if pet, generation, ok := pets[i].read(id); ok && generation > slot.changed.Load() {
			c.hits.Add(1)
			return pet, true
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
	slot, pets := c.slot(pet.ID)
	for i := range pets {
		if pets[i].id.Load() == pet.ID {
			pets[i].write(&pet, generation)
			return
		}
	}
	pets[slot.puts.Add(1)%petsInSlot].write(&pet, generation)
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

// write replaces the pet, unless somebody else is doing that.
func (p *cachedPet) write(pet *animalstore.Pet, generation uint64) {
	var rest packedPet
	rest[0], rest[1] = byte(statusIndex(petStatuses, pet.Status)), byte(len(pet.Name))
	copy(rest[2:], pet.Name)
	version := p.version.Load()
	if version%2 != 0 || !p.version.CompareAndSwap(version, version+1) {
		return
	}
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
		slot, _ := d.pets.slot(id)
		slot.changed.Store(d.writer.generation.Load() + 1)
	}
}
