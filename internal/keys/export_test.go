package keys

const MaxCached = maxCached

// Cached is the number of keys in the cache.
func (c *Checker) Cached() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.keys)
}
