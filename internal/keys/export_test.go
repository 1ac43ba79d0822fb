package keys

const (
	MaxCached = maxCached
	Shards    = shards
)

// Cached is the number of keys in the cache.
func (c *Checker) Cached() (n int) {
	for i := range c.shard {
		s := &c.shard[i]
		s.mu.RLock()
		n += len(s.keys)
		s.mu.RUnlock()
	}
	return n
}
