package api

// Stats are what a Server did since it was created, and what it remembers.
type Stats struct {
	PageHits, PageMisses int64 // of the cache of encoded pages
	Addresses            int   // whose requests without a valid key are counted
	Streams, Waiting     int   // of events, and requests that wait for events
	CutStreams           int64 // because their clients didn't read
}

// Stats returns the statistics of s.
func (s *Server) Stats() Stats {
	stats := Stats{PageHits: s.cache.hits.Load(), PageMisses: s.cache.misses.Load(), Addresses: s.anonymous.Tracked()}
	s.followers.mu.Lock()
	defer s.followers.mu.Unlock()
	stats.Streams, stats.Waiting, stats.CutStreams = s.followers.all, s.followers.waiting, s.followers.cut
	return stats
}
