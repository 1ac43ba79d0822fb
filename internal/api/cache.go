package api

import (
	"hash/maphash"
	"net/http"
	"sync"
	"sync/atomic"

	"animalstore"
)

const (
	cacheSlots  = 512
	maxCached   = 32 << 10 // bytes of a page; larger ones aren't cached
	maxCacheKey = 256
)

// cache stores encoded pages that are requested often. A page is valid only in
// the generation of the store it was read in, so a cached page is as fresh as a
// read from the database: see [db.DB].Generation.
//
// It has a fixed number of slots, and a new page replaces the one in the slot of
// its key. That bounds its size and makes a lock unnecessary.
type cache struct {
	disabled bool
	seed     maphash.Seed
	slots    [cacheSlots]atomic.Pointer[page]

	hits, misses atomic.Int64
}

// page is an encoded page of a list. Once cached, it's shared between requests
// and must not change.
type page struct {
	key        string
	generation uint64
	pets       []animalstore.Pet // what it was encoded from, if those may be shared
	hot        bool              // worth caching: a first page, which most requests are for
	link       string
	entity
}

func newPage(hot bool, link string, body []byte) *page {
	return &page{hot: hot, link: link, entity: newEntity(body)}
}

func newCache(disabled bool) *cache {
	return &cache{disabled: disabled, seed: maphash.MakeSeed()}
}

func (c *cache) slot(key string) *atomic.Pointer[page] {
	return &c.slots[maphash.String(c.seed, key)%cacheSlots]
}

// get returns the page cached under key, if it was read in this generation.
func (c *cache) get(key string, generation uint64) *page {
	p := c.slot(key).Load()
	if p == nil || p.generation != generation || p.key != key {
		c.misses.Add(1)
		return nil
	}
	c.hits.Add(1)
	return p
}

// encoded returns the page cached under key if it was encoded from these very pets, which
// a store returned to several requests. Nobody may change them, so it is the same page.
func (c *cache) encoded(key string, pets []animalstore.Pet) *page {
	p := c.slot(key).Load()
	if p == nil || p.key != key || len(pets) == 0 || len(p.pets) != len(pets) || &p.pets[0] != &pets[0] {
		return nil
	}
	return p
}

// put caches p under key for as long as the store stays in this generation.
func (c *cache) put(key string, generation uint64, p *page) {
	if !c.disabled && len(p.body) <= maxCached && len(key) <= maxCacheKey {
		p.key, p.generation = key, generation
		c.slot(key).Store(p)
	}
}

// writeCached writes the page that read returns, or the one it returned for an
// earlier request with the same URI.
func (s *Server) writeCached(w http.ResponseWriter, r *request, read func() (*page, error)) error {
	key := r.RequestURI
	generation, stable := s.db.Generation()
	if stable {
		if p := s.cache.get(key, generation); p != nil {
			return p.write(w, r)
		}
	}
	p, err := read()
	if err != nil {
		return err
	}
	if !p.hot {
		// HTTP/2 may still be sending a body after its client has reset the stream.
		if r.ProtoMajor == 1 {
			defer p.recycle()
		}
		return p.write(w, r)
	}
	// If the generation has changed, no request could get this page. Without generations,
	// only those that share its pets can.
	if stable {
		p.pets = nil
	}
	if now, _ := s.db.Generation(); p.key == "" && now == generation && (stable || p.pets != nil) {
		s.cache.put(key, generation, p)
	}
	return p.write(w, r)
}

// bodies are buffers of pages that were sent and not cached, for reuse.
var bodies = sync.Pool{New: func() any { return new([]byte) }}

func (p *page) recycle() {
	if cap(p.body) <= maxCached {
		b := p.body[:0]
		bodies.Put(&b)
	}
}

func (p *page) write(w http.ResponseWriter, r *request) error {
	setField(w, "Link", p.link)
	return p.entity.write(w, r, http.StatusOK)
}
