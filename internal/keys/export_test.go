package keys

const MaxCached = maxCached

// Cached is how many keys the checker remembers.
func (c *Checker) Cached() (n int) {
	for i := range c.shard {
		s := &c.shard[i]
		s.mu.RLock()
		n += len(s.keys)
		s.mu.RUnlock()
	}
	return n
}
