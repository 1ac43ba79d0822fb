package keys

// Cached is the number of keys in the cache.
func (c *Checker) Cached() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.keys)
}

// SetMaxCached limits the cache.
func (c *Checker) SetMaxCached(n int) { c.maxCached = n }
