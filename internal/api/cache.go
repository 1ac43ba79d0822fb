package api

import (
	"hash/maphash"
	"net/http"
	"sync"
	"sync/atomic"
)

const (
	cacheSlots  = 512
	maxCached   = 32 << 10 // bytes of a page; larger ones are not kept
	maxCacheKey = 256
)

// cache keeps the answers that are asked for again and again, encoded. An answer
// counts only under the generation of the store it was read in, so a read from
// here is as fresh as one from the database: see [db.DB].Generation.
//
// It has a fixed number of slots and a newcomer takes the slot its key falls
// into. That bounds it, and lets it do without a lock.
type cache struct {
	off   bool
	seed  maphash.Seed
	slots [cacheSlots]atomic.Pointer[page]
}

// page is a page of a list as it is sent. Once kept, it is shared between
// requests and not changed any more.
type page struct {
	key        string
	generation uint64
	hot        bool // worth keeping: a first page, which most callers ask for
	link       []string
	entity
}

func newPage(hot bool, link string, body []byte) *page {
	return &page{hot: hot, link: []string{link}, entity: newEntity(body)}
}

func newCache(off bool) *cache { return &cache{off: off, seed: maphash.MakeSeed()} }

func (c *cache) slot(key string) *atomic.Pointer[page] {
	return &c.slots[maphash.String(c.seed, key)%cacheSlots]
}

// get returns what is kept under key, if it was read in this generation.
func (c *cache) get(key string, generation uint64) *page {
	p := c.slot(key).Load()
	if p == nil || p.generation != generation || p.key != key {
		return nil
	}
	return p
}

// put keeps p under key, for as long as the store stays in this generation.
func (c *cache) put(key string, generation uint64, p *page) {
	if !c.off && len(p.body) <= maxCached && len(key) <= maxCacheKey {
		p.key, p.generation = key, generation
		c.slot(key).Store(p)
	}
}

// answer writes the page that read makes for this request, or one it made for
// an earlier request of the same address.
func (s *Server) answer(w http.ResponseWriter, r *request, read func() (*page, error)) error {
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
		// HTTP/2 may still be sending a body when its client has reset the stream.
		if r.ProtoMajor == 1 {
			defer p.recycle()
		}
		return p.write(w, r)
	}
	// Under another generation by now, nobody could ask for it any more.
	if now, _ := s.db.Generation(); stable && now == generation {
		s.cache.put(key, generation, p)
	}
	return p.write(w, r)
}

// bodies are those of pages that were sent and not kept, for reuse.
var bodies = sync.Pool{New: func() any { return new([]byte) }}

func (p *page) recycle() {
	if cap(p.body) <= maxCached {
		b := p.body[:0]
		bodies.Put(&b)
	}
}

func (p *page) write(w http.ResponseWriter, r *request) error {
	w.Header()["Link"] = p.link
	return p.entity.write(w, r, http.StatusOK)
}
