package animalstore

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
)

// MaxNetworks is how many networks a key can have.
const MaxNetworks = 20

// Networks are the networks that a key works from: a comma-separated list of prefixes such
// as 203.0.113.0/24. If it is empty, the key works from anywhere. In JSON it is an array.
type Networks string

// NewNetworks checks a list of networks and addresses. In the result, an address is a network
// of one, and there are no duplicates.
func NewNetworks(networks []string) (Networks, error) {
	if len(networks) > MaxNetworks {
		return "", Errorf(ValidationFailed, "networks must have at most %d items", MaxNetworks)
	}
	var list []string
	for i, text := range networks {
		prefix, ok := parseNetwork(text)
		if !ok {
			return "", Errorf(ValidationFailed, "networks must be networks such as 203.0.113.0/24 or 2001:db8::/32, or addresses: number %d isn't", i+1)
		}
		if prefix != prefix.Masked() {
			return "", Errorf(ValidationFailed, "networks must have no bits set after the prefix, as in 203.0.113.0/24: number %d has", i+1)
		}
		if text := prefix.String(); !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	return Networks(strings.Join(list, ",")), nil
}

// parseNetwork reads a prefix or an address. IPv4 written as IPv6, such as
// ::ffff:203.0.113.7, becomes IPv4, like the addresses of callers.
func parseNetwork(text string) (netip.Prefix, bool) {
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		addr, err := netip.ParseAddr(text)
		if err != nil || addr.Zone() != "" {
			return netip.Prefix{}, false
		}
		prefix = netip.PrefixFrom(addr, addr.BitLen())
	}
	const mappedBits = 96
	if prefix.Addr().Is4In6() && prefix.Bits() >= mappedBits {
		prefix = netip.PrefixFrom(prefix.Addr().Unmap(), prefix.Bits()-mappedBits)
	}
	return prefix, true
}

// List returns the networks.
func (n Networks) List() []string {
	if n == "" {
		return []string{}
	}
	return strings.Split(string(n), ",")
}

// Allow reports whether a key with these networks works from an address. IPv4 written as
// IPv6 must be unmapped before.
func (n Networks) Allow(addr netip.Addr) bool {
	if n == "" {
		return true
	}
	addr = addr.WithZone("") // a prefix never contains an address with a zone
	return slices.ContainsFunc(n.List(), func(text string) bool {
		prefix, err := netip.ParsePrefix(text)
		return err == nil && prefix.Contains(addr)
	})
}

// MarshalJSON writes an array.
func (n Networks) MarshalJSON() ([]byte, error) { return json.Marshal(n.List()) }

// UnmarshalJSON reads an array, without checking the networks.
func (n *Networks) UnmarshalJSON(data []byte) error {
	var list []string
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	*n = Networks(strings.Join(list, ","))
	return nil
}
