package ratelimit

// Tracked returns how many keys are in memory.
func (m *Memory) Tracked() (n int) {
	for i := range m.shard {
		s := &m.shard[i]
		s.mu.RLock()
		n += len(s.keys)
		s.mu.RUnlock()
	}
	return n
}

// Tracked returns how many keys are in this process's memory.
func (r *Redis) Tracked() int { return r.local.Tracked() }

// Tracked returns how many addresses are in memory.
func (a *Addresses) Tracked() (n int) {
	for i := range a.shard {
		s := &a.shard[i]
		s.mu.Lock()
		n += len(s.windows)
		s.mu.Unlock()
	}
	return n
}
