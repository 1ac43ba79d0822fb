package ratelimit_test

import (
	"encoding/binary"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/ratelimit"
)

// addressTest is an Addresses with a clock that the test controls.
type addressTest struct {
	*ratelimit.Addresses
	t   *testing.T
	now time.Time
}

func newAddressTest(t *testing.T) *addressTest {
	s := &addressTest{t: t, now: noon}
	s.Addresses = ratelimit.NewAddresses(func() time.Time { return s.now })
	return s
}

// admitted makes n requests, all of which must be admitted, and returns the last
// decision.
func (s *addressTest) admitted(n int, addr string) ratelimit.Decision {
	s.t.Helper()
	var d ratelimit.Decision
	for i := range n {
		if d = s.Take(netip.MustParseAddr(addr)); !d.Allowed {
			s.t.Fatalf("request %d of %s: got %s, want it admitted", i+1, addr, d.Code)
		}
	}
	return d
}

// TestAddressHas3000AMinute: an address has no daily limit, and is never banned.
func TestAddressHas3000AMinute(t *testing.T) {
	s := newAddressTest(t)
	const addr = "192.0.2.1"
	for range 5 {
		reset := s.now.Add(time.Minute + 999*time.Millisecond).Truncate(time.Second)
		want := ratelimit.Decision{Allowed: true, Limit: 3000, Reset: reset.Unix()}
		if d := s.admitted(3000, addr); d != want {
			t.Fatalf("request 3000: got %+v, want %+v", d, want)
		}
		s.now = reset.Add(-time.Millisecond)
		want = ratelimit.Decision{Code: animalstore.RateLimitExceeded, Limit: 3000, Reset: reset.Unix(), RetryAfter: 1}
		for range 4000 {
			if d := s.Take(netip.MustParseAddr(addr)); d != want {
				t.Fatalf("1 ms before Reset: got %+v, want %+v", d, want)
			}
		}
		s.now = reset
	}
}

func TestAddressesThatShareABucket(t *testing.T) {
	for _, tc := range []struct {
		name, a, b string
		same       bool
	}{
		{"IPv4 neighbours", "192.0.2.1", "192.0.2.2", false},
		{"IPv4 and the same mapped to IPv6", "192.0.2.1", "::ffff:192.0.2.1", true},
		{"two IPv4 mapped to IPv6", "::ffff:192.0.2.1", "::ffff:192.0.2.2", false},
		{"one IPv6 /64, first and last address", "2001:db8:0:1::", "2001:db8:0:1:ffff:ffff:ffff:ffff", true},
		{"neighbouring IPv6 /64", "2001:db8:0:2::1", "2001:db8:0:3::1", false},
		{"IPv6 in two zones", "fe80::1%eth0", "fe80::2%eth1", true},
		{"IPv4 and an IPv6 that begins with its bytes", "192.0.2.1", "c000:201::", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newAddressTest(t)
			s.admitted(3000, tc.a)
			if d := s.Take(netip.MustParseAddr(tc.b)); d.Allowed == tc.same {
				t.Errorf("%s after %s is exhausted: got allowed %v, want %v", tc.b, tc.a, d.Allowed, !tc.same)
			}
		})
	}
}

func TestPeekChargesNothing(t *testing.T) {
	s := newAddressTest(t)
	const addr = "192.0.2.1"
	for _, step := range []struct {
		takes int
		want  int64
	}{{0, 3000}, {1, 2999}, {2999, 0}} {
		s.admitted(step.takes, addr)
		for range 2 {
			d := s.Peek(netip.MustParseAddr(addr))
			want := ratelimit.Decision{Allowed: true, Limit: 3000, Remaining: step.want, Reset: noon.Add(time.Minute + 750*time.Millisecond).Unix()}
			if d != want {
				t.Errorf("got %+v, want %+v", d, want)
			}
		}
	}
	s.now = s.now.Add(2 * time.Minute)
	if d := s.Peek(netip.MustParseAddr(addr)); d.Remaining != 3000 {
		t.Errorf("after the window: got %d remaining, want 3000", d.Remaining)
	}
}

// TestAddressesAreBounded makes requests from more addresses than are remembered, each in
// its own /64.
func TestAddressesAreBounded(t *testing.T) {
	s := newAddressTest(t)
	a := [16]byte{0x20, 0x01, 0x0d, 0xb8}
	for i := range uint32(ratelimit.MaxAddresses + 1000) {
		binary.BigEndian.PutUint32(a[4:], i)
		if d := s.Take(netip.AddrFrom16(a)); !d.Allowed || d.Remaining != 2999 {
			t.Fatalf("address %d: got %+v, want it admitted with 2999 remaining", i, d)
		}
	}
	if got := s.Tracked(); got != ratelimit.MaxAddresses {
		t.Errorf("got %d addresses in memory, want %d", got, ratelimit.MaxAddresses)
	}
}

func TestConcurrentRequestsOfAnAddress(t *testing.T) {
	s := newAddressTest(t)
	addr := netip.MustParseAddr("192.0.2.1")
	var admitted atomic.Int64
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() {
			for range 20 {
				if s.Take(addr).Allowed {
					admitted.Add(1)
				}
				s.Peek(addr)
			}
		})
	}
	wg.Wait()
	if got := admitted.Load(); got != 3000 {
		t.Errorf("got %d admitted, want 3000", got)
	}
}
