package api_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/api"
	"animalstore/internal/db"
	"animalstore/internal/keys"
)

// TestClientAddress: the peer counts, unless it is a proxy we trust; then the
// last hop that is not.
func TestClientAddress(t *testing.T) {
	trusted := []netip.Prefix{
		netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("192.0.2.7/32"), netip.MustParsePrefix("2001:db8:aaaa::/48"),
	}
	tests := []struct {
		name      string
		peer      string
		forwarded []string
		want      string // without trusted proxies it is always the peer
	}{
		{"a peer", "198.51.100.1:1", nil, "198.51.100.1"},
		{"an untrusted peer", "198.51.100.1:1", []string{"203.0.113.9"}, "198.51.100.1"},
		{"a peer next to a trusted network", "11.0.0.1:1", []string{"203.0.113.9"}, "11.0.0.1"},
		{"a proxy that says nothing", "10.0.0.1:1", nil, "10.0.0.1"},
		{"a proxy", "10.0.0.1:1", []string{"203.0.113.9"}, "203.0.113.9"},
		{"a client that forges a hop", "10.0.0.1:1", []string{"1.2.3.4, 203.0.113.9"}, "203.0.113.9"},
		{"three proxies and a forged hop", "10.0.0.1:1", []string{"1.2.3.4,203.0.113.9 , 192.0.2.7,\t10.0.0.2"}, "203.0.113.9"},
		{"a forged header before the proxy's", "10.0.0.1:1", []string{"1.2.3.4", "203.0.113.9"}, "203.0.113.9"},
		{"with a port", "10.0.0.1:1", []string{"203.0.113.9:4711"}, "203.0.113.9"},
		{"garbage", "10.0.0.1:1", []string{"unknown"}, "10.0.0.1"},
		{"garbage behind a proxy", "10.0.0.1:1", []string{"203.0.113.9, unknown, 10.0.0.2"}, "10.0.0.2"},
		{"nothing after a comma", "10.0.0.1:1", []string{"203.0.113.9,"}, "10.0.0.1"},
		{"an IPv6 proxy", "[2001:db8:aaaa::1]:1", []string{"203.0.113.9"}, "203.0.113.9"},
		{"an IPv6 client in brackets", "10.0.0.1:1", []string{"[2001:db8::9]"}, "2001:db8::9"},
		{"an IPv6 client with a port", "10.0.0.1:1", []string{"[2001:db8::9]:4711"}, "2001:db8::9"},
		{"an IPv4 peer on an IPv6 socket", "[::ffff:198.51.100.1]:1", nil, "198.51.100.1"},
		{"an IPv4 proxy on an IPv6 socket", "[::ffff:10.0.0.1]:1", []string{"::ffff:203.0.113.9"}, "203.0.113.9"},
		{"no TCP", "@", []string{"203.0.113.9"}, "invalid IP"},
	}
	behind := api.New(api.Config{Settings: api.Settings{TrustedProxies: trusted}, Now: time.Now})
	alone := api.New(api.Config{Now: time.Now})
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := httptest.NewRequest("GET", "/v1/pets", nil)
			r.RemoteAddr, r.Header["X-Forwarded-For"] = test.peer, test.forwarded
			if got := behind.ClientAddr(r).String(); got != test.want {
				t.Errorf("behind proxies: got %s, want %s", got, test.want)
			}
			peer := "invalid IP"
			if addr, err := netip.ParseAddrPort(test.peer); err == nil {
				peer = addr.Addr().Unmap().String()
			}
			if got := alone.ClientAddr(r).String(); got != peer {
				t.Errorf("without trusted proxies: got %s, want the peer, %s", got, peer)
			}
		})
	}
}

// useUp makes all requests without a valid key that an address may make in a minute.
func (s *service) useUp(from string) { s.handler.UseUp(netip.MustParseAddrPort(from).Addr()) }

// strange is a request without a valid key from an address.
func strange(from string) call { return call{path: "/v1/pets", key: noKey, from: from} }

// preflight asks from the shop whether a page may send GET.
func preflight(key, from string) call {
	return call{method: "OPTIONS", path: "/v1/pets", key: key, from: from, header: http.Header{"Origin": {shop}, "Access-Control-Request-Method": {"GET"}}}
}

// TestAnonymous: requests without a valid key are counted by address.
func TestAnonymous(t *testing.T) {
	t.Parallel()
	s := start(t, func(with *setup) { with.origins = []string{shop} }).inProcess()
	const here, there = "198.51.100.1:4711", "198.51.100.2:4711"
	s.clock.Advance(250 * time.Millisecond)
	reset := s.clock.Now().Add(time.Minute + time.Second - 1).Truncate(time.Second)
	refusals := []struct {
		call call
		code animalstore.Code
	}{
		{call{path: "/v1/pets", key: noKey}, "missing_api_key"},
		{call{path: "/v1/nothing", key: keys.Mint(s.env)}, "invalid_api_key"},
		{call{method: "POST", path: "/v1/pets", key: "ast_live_mistyped", body: "x", bad: true}, "invalid_api_key"},
	}
	for i, c := range refusals {
		c.call.from = fmt.Sprintf("198.51.100.1:%d", 1024+i)
		got := s.do(t, c.call)
		got.want(t, http.StatusUnauthorized, c.code)
		got.wantLimits(t, 3_000, 2_999-int64(i), reset)
	}
	s.do(t, call{path: "/v1/pets", from: here}).wantLimits(t, 1<<40, 1<<40-1, reset) // a valid key
	s.useUp(here)
	for _, c := range refusals {
		c.call.from = here
		got := s.do(t, c.call)
		got.want(t, http.StatusTooManyRequests, animalstore.RateLimitExceeded)
		got.wantLimits(t, 3_000, 0, reset)
	}
	t.Run("a valid key from there is served", func(t *testing.T) {
		got := s.do(t, call{path: "/v1/pets", from: here})
		got.want(t, http.StatusOK, "")
		got.wantLimits(t, 1<<40, 1<<40-2, reset)
	})
	t.Run("a preflight from there is allowed", func(t *testing.T) {
		s.do(t, preflight(noKey, here)).want(t, http.StatusNoContent, "")
	})
	t.Run("another address is not touched", func(t *testing.T) {
		for _, from := range []string{there, "@"} { // "@": a peer without an IP address
			got := s.do(t, strange(from))
			got.want(t, http.StatusUnauthorized, animalstore.MissingAPIKey)
			got.wantLimits(t, 3_000, 2_999, reset)
		}
	})
	t.Run("and admitted after the minute", func(t *testing.T) {
		s.clock.Set(reset)
		got := s.do(t, strange(here))
		got.want(t, http.StatusUnauthorized, animalstore.MissingAPIKey)
		got.wantLimits(t, 3_000, 2_999, reset.Add(time.Minute))
	})
}

// TestNotCharged: preflights, and requests whose key or its counters can't be read, are
// charged to neither the address nor the key.
func TestNotCharged(t *testing.T) {
	t.Parallel()
	s := start(t, func(with *setup) { with.origins = []string{shop} }).inProcess()
	const from = "198.51.100.1:1"
	secret, id := s.with(t, readWrite, nil)
	s.do(t, strange(from)).wantLimits(t, 3_000, 2_999, s.clock.Now().Add(time.Minute))
	for range 3 {
		got := s.do(t, preflight(secret, from))
		got.want(t, http.StatusNoContent, "")
		got.wantLimits(t, 3_000, 2_999, s.clock.Now().Add(time.Minute))
	}
	for _, method := range []string{"KeyByHash", "LimitState"} {
		s.db.arm(method, failWith(db.ErrUnavailable))
		for range 3 {
			got := s.do(t, call{path: "/v1/pets", key: secret, from: from})
			got.want(t, http.StatusServiceUnavailable, animalstore.Unavailable)
			got.wantLimits(t, 3_000, 2_999, s.clock.Now().Add(time.Minute))
		}
		s.db.arm(method, nil)
	}
	s.do(t, strange(from)).wantLimits(t, 3_000, 2_998, s.clock.Now().Add(time.Minute))
	if got := s.used(t, id); got != (db.LimitState{}) {
		t.Errorf("got %+v charged to the key, want nothing", got)
	}
	s.do(t, call{path: "/v1/pets", key: secret, from: from}).want(t, http.StatusOK, "")
}
