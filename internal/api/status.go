package api

import (
	"net/http"
	"sync/atomic"
	"time"

	"animalstore"
)

// getStatus serves GET /v1/status: the state of the instance that serves it.
func (s *Server) getStatus(w http.ResponseWriter, r *request) error {
	size, err := s.DB.Size(r.Context())
	if err != nil {
		return err
	}
	stats, now := s.Stats(), s.Now()
	status := animalstore.Status{
		Version:       s.Version,
		Deployment:    s.Environment,
		SizeBytes:     size,
		UptimeSeconds: int64(max(0, now.Sub(s.started)) / time.Second),
		CacheHits:     stats.PageHits,
		CacheMisses:   stats.PageMisses,
		Requests:      s.lastHour.list(now),
	}
	s.State(&status)
	w.Header().Set("Cache-Control", "no-store")
	return writeResource(w, r, http.StatusOK, status)
}

// minutesKept is how long requests are counted by the minute.
const minutesKept = 60

// requestLog counts the requests of the last hour by minute, without a lock. A request
// counted just as a minute begins may be lost, which is good enough for a plot.
type requestLog [minutesKept]struct {
	minute atomic.Int64    // Unix time divided by 60
	counts [4]atomic.Int64 // served, rejected, limited, failed
}

// add counts a response with this status at now.
func (l *requestLog) add(now time.Time, status int) {
	minute := now.Unix() / 60
	slot := &l[minute%minutesKept]
	if before := slot.minute.Load(); before != minute && slot.minute.CompareAndSwap(before, minute) {
		for i := range slot.counts {
			slot.counts[i].Store(0)
		}
	}
	kind := 0
	switch {
	case status >= 500:
		kind = 3
	case status == http.StatusTooManyRequests:
		kind = 2
	case status >= 400:
		kind = 1
	}
	slot.counts[kind].Add(1)
}

// list returns the last hour, oldest minute first, with the current one at its end.
func (l *requestLog) list(now time.Time) []animalstore.RequestMinute {
	all := make([]animalstore.RequestMinute, minutesKept)
	last := now.Unix() / 60
	for i := range all {
		minute := last - int64(minutesKept-1-i)
		all[i].Minute = animalstore.At(time.Unix(minute*60, 0))
		slot := &l[minute%minutesKept]
		if slot.minute.Load() != minute {
			continue
		}
		all[i].Served, all[i].Rejected = slot.counts[0].Load(), slot.counts[1].Load()
		all[i].Limited, all[i].Failed = slot.counts[2].Load(), slot.counts[3].Load()
	}
	return all
}

// Stats are counters since the Server was created, and current sizes.
type Stats struct {
	PageHits, PageMisses int64 // of the cache of encoded pages
	Addresses            int   // whose requests without a valid key are counted
	Streams, Waiting     int   // of events, and requests that wait for events
	CutStreams           int64 // because their clients didn't read
	InventoryCounts      int64 // of pets, for inventories
	LostFailures         int64 // failed requests that couldn't be stored
}

// Stats returns the statistics of s.
func (s *Server) Stats() Stats {
	stats := Stats{PageHits: s.cache.hits.Load(), PageMisses: s.cache.misses.Load(), Addresses: s.anonymous.Tracked(), InventoryCounts: s.inventories.countsMade(), LostFailures: s.failures.lostSoFar()}
	s.followers.mu.Lock()
	defer s.followers.mu.Unlock()
	stats.Streams, stats.Waiting, stats.CutStreams = s.followers.all, s.followers.waiting, s.followers.cut
	return stats
}
