package ratelimit

import (
	"hash/maphash"
	"net/netip"
	"sync"
	"time"

	"animalstore"
)

// PerAddress is the number of requests without a valid key that an address may
// make per minute.
const PerAddress = 3000

const (
	addressShards    = 64
	addressesInShard = 1024
)

// Addresses limits requests without a valid key by the client's address: an IPv4
// address or an IPv6 /64, which is usually one customer. It remembers a bounded number
// of addresses; beyond that, each new one replaces another.
type Addresses struct {
	now   func() time.Time
	seed  maphash.Seed
	shard [addressShards]addressShard
}

type addressShard struct {
	mu      sync.Mutex
	windows map[netip.Addr]animalstore.Window
	scanned int64 // when makeRoom last scanned all of them
}

// NewAddresses returns an Addresses that uses the given clock.
func NewAddresses(now func() time.Time) *Addresses {
	a := &Addresses{now: now, seed: maphash.MakeSeed()}
	for i := range a.shard {
		a.shard[i].windows = make(map[netip.Addr]animalstore.Window)
	}
	return a
}

// addressKey has the limits of an address. The daily limit can't be reached.
var addressKey = animalstore.Key{Limits: animalstore.Limits{PerMinute: PerAddress, PerDay: 1 << 62}}

// Take decides on one request without a valid key.
func (a *Addresses) Take(addr netip.Addr) Decision { return a.decide(addr, true) }

// Peek returns the status of an address without charging it.
func (a *Addresses) Peek(addr netip.Addr) Decision { return a.decide(addr, false) }

func (a *Addresses) decide(addr netip.Addr, charge bool) Decision {
	addr = addressBucket(addr)
	s := &a.shard[maphash.Comparable(a.seed, addr)%addressShards]
	now := a.now().UnixMilli()
	s.mu.Lock()
	defer s.mu.Unlock()
	window, known := s.windows[addr]
	if !charge {
		st := status(animalstore.LimitState{Minute: window}, now, &addressKey)
		return Decision{Allowed: true, Limit: st.Minute.Limit, Remaining: st.Minute.Remaining, Reset: st.Minute.Reset.Unix()}
	}
	if !known && len(s.windows) >= addressesInShard {
		s.makeRoom(now)
	}
	if remaining(window, now, PerAddress) == 0 {
		return refusal(animalstore.RateLimitExceeded, PerAddress, window.End, now)
	}
	state := animalstore.LimitState{Minute: window}
	d := decide(&state, now, &addressKey)
	s.windows[addr] = state.Minute
	return d
}

// makeRoom removes windows that are over, or any window if none is. It scans for them
// at most once a second, because a flood of new addresses would make more scans
// expensive.
func (s *addressShard) makeRoom(now int64) {
	if now-s.scanned >= 1000 || now < s.scanned {
		s.scanned = now
		for addr, w := range s.windows {
			if now >= w.End {
				delete(s.windows, addr)
			}
		}
	}
	for addr := range s.windows {
		if len(s.windows) < addressesInShard {
			return
		}
		delete(s.windows, addr)
	}
}

func addressBucket(addr netip.Addr) netip.Addr {
	addr = addr.Unmap()
	if addr.Is6() {
		prefix, _ := addr.Prefix(64) // without the zone
		return prefix.Addr()
	}
	return addr
}

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
