package ratelimit_test

import (
	"encoding/binary"
	"net/netip"
	"runtime"
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
	s := &addressTest{t: t, now: time.Date(2026, 3, 10, 12, 0, 0, 250e6, time.UTC)}
	s.Addresses = ratelimit.NewAddresses(func() time.Time { return s.now })
	return s
}

// admitted makes n requests, all of which must be admitted.
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

func (s *addressTest) refused(addr string) ratelimit.Decision {
	s.t.Helper()
	d := s.Take(netip.MustParseAddr(addr))
	if d.Allowed || d.Code != animalstore.RateLimitExceeded {
		s.t.Fatalf("%s: got %+v, want rate_limit_exceeded", addr, d)
	}
	return d
}

func TestAddressHas3000AMinute(t *testing.T) {
	s := newAddressTest(t)
	reset := time.Date(2026, 3, 10, 12, 1, 1, 0, time.UTC)
	const addr = "192.0.2.1"
	for left := int64(2999); left >= 0; left-- {
		want := ratelimit.Decision{Allowed: true, Limit: 3000, Remaining: left, Reset: reset.Unix()}
		if d := s.admitted(1, addr); d != want {
			t.Fatalf("got %+v, want %+v", d, want)
		}
	}
	want := ratelimit.Decision{Code: animalstore.RateLimitExceeded, Limit: 3000, Reset: reset.Unix(), RetryAfter: 61}
	if d := s.refused(addr); d != want {
		t.Errorf("request 3001: got %+v, want %+v", d, want)
	}
	s.now = reset.Add(-time.Millisecond)
	for range 10_000 { // addresses are never banned
		if d := s.refused(addr); d.RetryAfter != 1 || d.Reset != reset.Unix() {
			t.Fatalf("1 ms before Reset: got %+v, want Retry-After 1 and Reset %d", d, reset.Unix())
		}
	}
	s.now = reset
	if d := s.admitted(1, addr); d.Remaining != 2999 {
		t.Errorf("at Reset: got %d remaining, want 2999", d.Remaining)
	}
}

// TestAddressHasNoDailyLimit makes more requests in an hour than most plans allow
// in a day.
func TestAddressHasNoDailyLimit(t *testing.T) {
	s := newAddressTest(t)
	for range 60 {
		s.admitted(3000, "192.0.2.1")
		s.refused("192.0.2.1")
		s.now = s.now.Add(61 * time.Second)
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
		{"neighbouring IPv6 /64", "2001:db8:0:1::1", "2001:db8:0:2::1", false},
		{"IPv6 with and without a zone", "fe80::1%eth0", "fe80::1", true},
		{"IPv6 in two zones", "fe80::1%eth0", "fe80::2%eth1", true},
		{"IPv4 and an IPv6 that begins with its bytes", "192.0.2.1", "c000:201::", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newAddressTest(t)
			s.admitted(3000, tc.a)
			s.refused(tc.a)
			if d := s.Take(netip.MustParseAddr(tc.b)); d.Allowed == tc.same {
				t.Errorf("%s after %s is exhausted: got allowed %v, want %v", tc.b, tc.a, d.Allowed, !tc.same)
			}
		})
	}
}

func TestPeekChargesNothing(t *testing.T) {
	s := newAddressTest(t)
	addr := netip.MustParseAddr("192.0.2.1")
	reset := time.Date(2026, 3, 10, 12, 1, 1, 0, time.UTC).Unix()
	for _, step := range []struct {
		name  string
		takes int
		want  int64
	}{{"an unknown address", 0, 3000}, {"after one request", 1, 2999}, {"exhausted", 2999, 0}} {
		if step.takes > 0 {
			s.admitted(step.takes, "192.0.2.1")
		}
		for range 5000 {
			want := ratelimit.Decision{Allowed: true, Limit: 3000, Remaining: step.want, Reset: reset}
			if d := s.Peek(addr); d != want {
				t.Fatalf("%s: got %+v, want %+v", step.name, d, want)
			}
		}
	}
	s.refused("192.0.2.1")
	s.now = s.now.Add(2 * time.Minute)
	if d := s.Peek(addr); d.Remaining != 3000 {
		t.Errorf("after the window: got %d remaining, want 3000", d.Remaining)
	}
}

func TestAddressClockStepsBack(t *testing.T) {
	s := newAddressTest(t)
	reset := s.admitted(3000, "192.0.2.1").Reset
	s.now = s.now.Add(-time.Hour)
	if d := s.refused("192.0.2.1"); d.Reset != reset {
		t.Errorf("got Reset %d, want %d as before", d.Reset, reset)
	}
	s.now = time.Unix(reset, 0)
	s.admitted(1, "192.0.2.1")
}

// numbered is the nth of many addresses, each in its own /64.
func numbered(n int) netip.Addr {
	a := [16]byte{0x20, 0x01, 0x0d, 0xb8}
	binary.BigEndian.PutUint32(a[4:], uint32(n))
	return netip.AddrFrom16(a)
}

// TestAddressesAreBounded makes requests from millions of addresses in one window.
func TestAddressesAreBounded(t *testing.T) {
	const count = 500_000
	s := newAddressTest(t)
	before := heap()
	for i := range count {
		if d := s.Take(numbered(i)); !d.Allowed || d.Remaining != 2999 {
			t.Fatalf("address %d: got %+v, want it admitted with 2999 remaining", i, d)
		}
	}
	mebibytes := float64(heap()-before) / (1 << 20)
	t.Logf("%d addresses: %.1f MiB", count, mebibytes)
	if mebibytes > 20 {
		t.Errorf("got %.1f MiB after %d addresses, want at most 20", mebibytes, count)
	}
	runtime.KeepAlive(s)
}

func TestAddressAtOnce(t *testing.T) {
	s := newAddressTest(t)
	addr := netip.MustParseAddr("192.0.2.1")
	for round := range 10 {
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
			t.Fatalf("round %d: got %d admitted, want 3000", round, got)
		}
		s.now = s.now.Add(61 * time.Second)
	}
}

func BenchmarkAddresses(b *testing.B) {
	for _, bc := range []struct {
		name      string
		addresses int
	}{{"one", 1}, {"fifty thousand", 50_000}, {"too many to remember", 10_000_000}} {
		b.Run(bc.name, func(b *testing.B) {
			a := ratelimit.NewAddresses(time.Now)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				a.Take(numbered(i % bc.addresses))
			}
		})
	}
}
