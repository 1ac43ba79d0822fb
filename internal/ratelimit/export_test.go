package ratelimit

// DropIdle forgets the idle keys of all shards at once, where Run takes turns.
func (m *Memory) DropIdle() {
	for i := range m.shard {
		m.dropIdle(&m.shard[i])
	}
}
