package api_test

import (
	"net/http"
	"net/netip"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
)

// TestNetworks: a key works from its networks and nowhere else, by the address that trusted
// proxies leave.
func TestNetworks(t *testing.T) {
	t.Parallel()
	s := start(t, func(with *setup) { with.proxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")} }).inProcess()
	const v4, v6, one = "203.0.113.0/24", "2001:db8::/32", "198.51.100.7"
	for i, test := range []struct {
		networks, peer, forwarded string
		works                     bool
	}{
		{"", "203.0.113.7:1", "", true},
		{"", "@", "", true},
		{v4, "203.0.113.255:1", "", true},
		{v4, "203.0.114.0:1", "", false},
		{v4, "[2001:db8::1]:1", "", false},
		{v4, "[::ffff:203.0.113.7]:1", "", true},
		{v4, "@", "", false}, // not TCP
		{"::ffff:198.51.100.7", "198.51.100.7:1", "", true},
		{v6, "[2001:db8:ffff::1]:1", "", true},
		{"fe80::/10", "[fe80::1%eth0]:1", "", true},
		{"2001:db8::1", "[2001:db8::2]:1", "", false}, // although limits count by /64
		{"::/0", "203.0.113.7:1", "", false},
		{"0.0.0.0/0", "203.0.113.7:1", "", true},
		{v6 + "," + v4 + "," + one, "198.51.100.7:1", "", true},

		{v4, "10.0.0.1:1", "203.0.113.7", true},
		{v4, "10.0.0.1:1", "203.0.113.7, 198.51.100.1", false}, // the left one may be forged
		{v4, "198.51.100.1:1", "203.0.113.7", false},           // no trusted proxy
		{"10.0.0.0/8", "10.0.0.1:1", "203.0.113.7", false},
	} {
		secret, _ := s.with(t, animalstore.Read, func(k *animalstore.NewKey) {
			k.Networks = animalstore.Networks(test.networks)
		})
		c := call{path: "/v1/pets", key: secret, from: test.peer, header: http.Header{}}
		if test.forwarded != "" {
			c.header.Set("X-Forwarded-For", test.forwarded)
		}
		want, code := http.StatusOK, animalstore.Code("")
		if !test.works {
			want, code = http.StatusForbidden, animalstore.AddressNotAllowed
		}
		if got := s.do(t, c); got.status != want || got.code() != code {
			t.Errorf("%d: networks %q from %s for %q: got %v, want %d", i, test.networks, test.peer, test.forwarded, got, want)
		}
	}
}

// TestThief: someone who may not use a key uses up the limit of their address, and nothing
// of the key: neither its limits nor its time of last use, and it gets neither strikes nor a
// ban.
func TestThief(t *testing.T) {
	t.Parallel()
	for _, code := range []animalstore.Code{animalstore.KeySuspended, animalstore.AddressNotAllowed} {
		t.Run(string(code), func(t *testing.T) {
			s := start(t).inProcess()
			const thief, home = "198.51.100.1:1", "203.0.113.7:1"
			secret, id := s.with(t, everything, func(k *animalstore.NewKey) {
				k.Limits, k.Networks = animalstore.Limits{PerMinute: 10, PerDay: 20}, "203.0.113.0/24"
			})
			key := call{path: "/v1/pets", key: secret, from: home}
			if code == animalstore.KeySuspended {
				s.suspend(t, id, true)
			}
			reset := s.clock.Now().Add(time.Minute)
			for i, c := range []call{
				{path: "/v1/pets"}, {path: "/v1/nothing"}, {path: "/v1/limits"}, {method: "OPTIONS", path: "/v1/pets"}, {method: "PUT", path: "/v1/pets", bad: true},
				{method: "POST", path: "/v1/pets", body: "x", bad: true}, {path: "/v1/events", header: http.Header{"Accept": {"text/event-stream"}}},
			} {
				c.key, c.from = secret, thief
				got := s.do(t, c)
				got.want(t, http.StatusForbidden, code)
				got.wantLimits(t, 3_000, 2_999-int64(i), reset)
			}
			s.useUp(thief)
			for range 200 { // more than the strikes that ban a key
				s.clock.Advance(10 * time.Millisecond)
				s.unchecked().do(t, call{path: "/v1/pets", key: secret, from: thief}).want(t, http.StatusTooManyRequests, animalstore.RateLimitExceeded)
			}
			if err := s.server.Save(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := s.used(t, id); got != (db.LimitState{}) {
				t.Errorf("got %+v charged to the key, want nothing", got)
			}
			if got := s.asAdmin(t, "GET", keyPath(id), "").key(t).LastUsedAt; got != "" {
				t.Errorf("got last use %s, want never", got)
			}
			s.suspend(t, id, false)
			s.clock.Advance(time.Second)
			got := s.do(t, key)
			got.want(t, http.StatusOK, "")
			got.wantLimits(t, 10, 9, s.clock.Now().Add(time.Minute))
		})
	}
}

// TestWouldLockOut: an admin key can neither suspend itself nor exclude the address it is used
// from, which others can do to it.
func TestWouldLockOut(t *testing.T) {
	s := start(t).inProcess()
	const here = "203.0.113.7:1"
	secret, id := s.with(t, everything, nil)
	own := func(body string) response {
		t.Helper()
		c := patch(keyPath(id), body)
		c.key, c.from = secret, here
		return s.do(t, c)
	}
	for _, body := range []string{`{"suspended":true}`, `{"networks":["198.51.100.0/24"]}`, `{"networks":["2001:db8::/32"],"name":"x"}`} {
		own(body).want(t, http.StatusConflict, animalstore.WouldLockOut)
	}
	if got := s.asAdmin(t, "GET", keyPath(id), "").key(t); got.SuspendedAt != "" || len(got.Networks) != 0 || got.Name == "x" {
		t.Errorf("got %+v, want it unchanged", got)
	}
	own(`{"networks":["203.0.113.0/24"]}`).want(t, http.StatusOK, "")
	own(`{"networks":[],"suspended":false}`).want(t, http.StatusOK, "")
	for _, body := range []string{`{"networks":["198.51.100.0/24"]}`, `{"suspended":true}`} {
		s.asAdmin(t, "PATCH", keyPath(id), body).want(t, http.StatusOK, "")
	}
}

// TestPermissionMessage: a 403 names what is needed and what the key has.
func TestPermissionMessage(t *testing.T) {
	s := start(t)
	for _, test := range []struct {
		path  string
		has   animalstore.Permissions
		names []string
	}{
		{"/v1/pets", animalstore.OrdersWrite | animalstore.Write, []string{"permission pets:read;", "write,orders:write"}},
		{"/v1/events", animalstore.Write, []string{"pets:read or orders:read", "has write"}},
		{"/v1/keys", animalstore.Read, []string{"admin", "has read"}},
	} {
		got := s.do(t, call{path: test.path, key: s.key(t, test.has)})
		got.want(t, http.StatusForbidden, animalstore.InsufficientPermission)
		got.wantMessage(t, test.names...)
	}
}
