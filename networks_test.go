package animalstore

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"testing"
)

func TestNewNetworks(t *testing.T) {
	for _, test := range []struct {
		in   []string
		want string
	}{
		{nil, ``},
		{[]string{"203.0.113.0/24", "2001:DB8:0::/32"}, "203.0.113.0/24,2001:db8::/32"},
		{[]string{"203.0.113.7", "2001:db8::1"}, "203.0.113.7/32,2001:db8::1/128"},
		{[]string{"::ffff:203.0.113.7", "::ffff:203.0.113.0/120", "::ffff:0:0/96"}, "203.0.113.7/32,203.0.113.0/24,0.0.0.0/0"},
		{[]string{"0.0.0.0/0", "::/0", "0.0.0.0/0"}, "0.0.0.0/0,::/0"},
	} {
		got, err := NewNetworks(test.in)
		if err != nil || string(got) != test.want {
			t.Errorf("%q: got %q, %v, want %q", test.in, got, err, test.want)
		}
		var again Networks
		if text, err := json.Marshal(got); err != nil || json.Unmarshal(text, &again) != nil || again != got {
			t.Errorf("%q: got %q back from %s (%v)", test.in, again, text, err)
		}
	}
	for _, bad := range []string{"", " ", "x", "203.0.113.0/24 ", "203.0.113.1/24", "203.0.113.0/33", "203.0.113.0/", "203.0.113", "2001:db8::1/32", "fe80::1%eth0", "fe80::%eth0/64", "::ffff:203.0.113.7/120", "::ffff:203.0.113.0/90", "203.0.113.0/24,192.0.2.0/24"} {
		if got, err := NewNetworks([]string{"192.0.2.0/24", bad}); code(err) != ValidationFailed {
			t.Errorf("%q: got %q, %v, want it refused", bad, got, err)
		}
	}
}

// TestNetworksHaveALimit: 20 networks, counted before duplicates are dropped.
func TestNetworksHaveALimit(t *testing.T) {
	var list []string
	for i := range MaxNetworks {
		list = append(list, fmt.Sprintf("192.0.2.%d", i))
	}
	if got, err := NewNetworks(list); err != nil || len(got.List()) != MaxNetworks {
		t.Errorf("got %q, %v, want %d networks", got, err, MaxNetworks)
	}
	if _, err := NewNetworks(slices.Repeat([]string{"192.0.2.1"}, MaxNetworks+1)); code(err) != ValidationFailed {
		t.Errorf("got %v, want it refused", err)
	}
}

// TestNetworksFailClosed: networks that can't be read allow no address.
func TestNetworksFailClosed(t *testing.T) {
	for _, n := range []Networks{"x", ",", "203.0.113.7"} {
		if n.Allow(netip.MustParseAddr("203.0.113.7")) {
			t.Errorf("%q: got an address allowed", n)
		}
	}
}
