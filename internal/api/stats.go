package api

// Stats are what a Server did since it was created, and what it remembers.
type Stats struct {
	PageHits, PageMisses int64 // of the cache of encoded pages
	Addresses            int   // whose requests without a valid key are counted
}

// Stats returns the statistics of s.
func (s *Server) Stats() Stats {
	return Stats{s.cache.hits.Load(), s.cache.misses.Load(), s.anonymous.Tracked()}
}
