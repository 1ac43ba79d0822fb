package ratelimit

import (
	"net/netip"
	"sync"
	"time"

	"animalstore"
	"animalstore/internal/db"
)

// PerAddress is the number of requests without a valid key that an address may
// make per minute.
const PerAddress = 3000

const maxAddresses = 1 << 16

// Addresses limits requests without a valid key by the client's address: an IPv4
// address or an IPv6 /64, which is usually one customer. It remembers a bounded number
// of addresses; beyond that, each new one replaces another.
type Addresses struct {
	now func() time.Time

	mu      sync.Mutex
	windows map[netip.Addr]db.Window
}

// NewAddresses returns an Addresses that uses the given clock.
func NewAddresses(now func() time.Time) *Addresses {
	return &Addresses{now: now, windows: make(map[netip.Addr]db.Window)}
}

// addressKey has the limits of an address. The daily limit can't be reached.
var addressKey = animalstore.Key{Limits: animalstore.Limits{PerMinute: PerAddress, PerDay: 1 << 62}}

// Take decides on one request without a valid key.
func (a *Addresses) Take(addr netip.Addr) Decision { return a.decide(addr, true) }

// Peek returns the status of an address without charging it.
func (a *Addresses) Peek(addr netip.Addr) Decision { return a.decide(addr, false) }

func (a *Addresses) decide(addr netip.Addr, charge bool) Decision {
	addr = addressBucket(addr)
	now := a.now().UnixMilli()
	a.mu.Lock()
	defer a.mu.Unlock()
	window, known := a.windows[addr]
	if !charge {
		st := status(db.LimitState{Minute: window}, now, &addressKey)
		return Decision{Allowed: true, Limit: st.Minute.Limit, Remaining: st.Minute.Remaining, Reset: st.Minute.Reset.Unix()}
	}
	if !known && len(a.windows) >= maxAddresses {
		a.evict()
	}
	if remaining(window, now, PerAddress) == 0 {
		return refusal(animalstore.RateLimitExceeded, PerAddress, window.End, now)
	}
	state := db.LimitState{Minute: window}
	d := decide(&state, now, &addressKey)
	a.windows[addr] = state.Minute
	return d
}

// evict removes a random address.
func (a *Addresses) evict() {
	for addr := range a.windows {
		delete(a.windows, addr)
		return
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
func (a *Addresses) Tracked() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.windows)
}
