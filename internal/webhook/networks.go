package webhook

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"animalstore"
)

// special are the blocks of addresses that differ from the rest of their address space:
// those in IANA's registries of special-purpose addresses, and a few more. The longest
// prefix decides.
var special = func() map[netip.Prefix]bool {
	blocks := map[netip.Prefix]bool{}
	for list, global := range map[string]bool{
		// Not globally reachable.
		`0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24
		192.0.2.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 240.0.0.0/4
		2001::/23 2001:2::/48 2001:db8::/32 3fff::/20`: false,
		// Multicast; relays of 6to4, and addresses that contain an IPv4 address:
		// 6to4 and Teredo.
		`224.0.0.0/4 192.88.99.0/24 2002::/16 2001::/32`: false,
		// Azure serves machines in its network at this address.
		`168.63.129.16/32`: false,
		// Globally reachable, in a block that isn't.
		`192.0.0.9/32 192.0.0.10/32 2001:1::1/128 2001:1::2/128 2001:1::3/128 2001:3::/32
		2001:4:112::/48 2001:20::/28 2001:30::/28`: true,
	} {
		for text := range strings.FieldsSeq(list) {
			blocks[netip.MustParsePrefix(text)] = global
		}
	}
	return blocks
}()

// unicast6 is all that IANA has assigned as global unicast addresses. Everything else
// in IPv6 is for special purposes or unassigned: loopback, IPv4-mapped, NAT64,
// unique local, link-local, multicast.
var unicast6 = netip.MustParsePrefix("2000::/3")

// isGlobal reports whether an address is globally reachable according to IANA's
// registries.
func isGlobal(addr netip.Addr) bool {
	if !addr.IsValid() || addr.Zone() != "" || addr.Is6() && !unicast6.Contains(addr) {
		return false
	}
	global, bits := true, -1
	for block, is := range special {
		if block.Bits() > bits && block.Contains(addr) {
			global, bits = is, block.Bits()
		}
	}
	return global
}

// Networks decides where webhooks may be sent: to globally reachable addresses over
// https, and to the networks that the operator allows also over http.
type Networks struct {
	extra   []netip.Prefix
	resolve func(ctx context.Context, host string) ([]netip.Addr, error)
}

// NewNetworks returns Networks that also allow the given ones.
func NewNetworks(extra []netip.Prefix) *Networks {
	return &Networks{extra: extra, resolve: func(ctx context.Context, host string) ([]netip.Addr, error) {
		return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	}}
}

// ParseNetworks reads a list of networks such as 10.1.0.0/16. A bare address is a network
// of one.
func ParseNetworks(list []string) ([]netip.Prefix, error) {
	var networks []netip.Prefix
	for _, text := range list {
		text = strings.TrimSpace(text)
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			addr, addrErr := netip.ParseAddr(text)
			if addrErr != nil || addr.Zone() != "" {
				return nil, fmt.Errorf("%q isn't a network such as 10.1.0.0/16 or an address", text)
			}
			prefix = netip.PrefixFrom(addr, addr.BitLen())
		}
		networks = append(networks, prefix.Masked())
	}
	return networks, nil
}

var (
	errNotAllowed = errors.New("the address is not globally reachable, and not in a network that webhooks may reach")
	errPlainHTTP  = errors.New("http is only for networks that the operator allows: use https")
)

// allow reports whether a connection to an address may be made.
func (n *Networks) allow(addr netip.Addr, scheme string) error {
	// A listener for IPv6 takes connections to the IPv4 address too.
	unmapped := addr.Unmap()
	if slices.ContainsFunc(n.extra, func(p netip.Prefix) bool { return p.Contains(unmapped) || p.Contains(addr) }) {
		return nil
	}
	if !isGlobal(addr) {
		return errNotAllowed
	}
	if scheme != "https" {
		return errPlainHTTP
	}
	return nil
}

// resolveTimeout bounds the look-up of a name when a webhook is saved.
const resolveTimeout = 3 * time.Second

// Check returns an error for the client unless a valid URL leads only to addresses that
// are allowed. Its name may resolve to another address later, so the sender checks the
// address of every connection again.
func (n *Networks) Check(ctx context.Context, text string) error {
	if err := animalstore.ValidateWebhookURL(text); err != nil {
		return err
	}
	u, err := url.Parse(text)
	if err != nil {
		return err
	}
	if err := n.checkLiteral(u); err != nil {
		return refused(err)
	}
	if u.Scheme != "https" && len(n.extra) == 0 {
		return animalstore.Errorf(animalstore.ValidationFailed, "url must begin with https://")
	}
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	addrs, err := n.resolve(ctx, u.Hostname())
	if err != nil || len(addrs) == 0 {
		return animalstore.Errorf(animalstore.ValidationFailed, "url must have a host name that resolves to an address")
	}
	for _, addr := range addrs {
		// Go returns IPv4 addresses in /etc/hosts as IPv6.
		if err := n.allow(addr.Unmap().WithZone(""), u.Scheme); err != nil {
			return refused(err)
		}
	}
	return nil
}

func refused(err error) error {
	return animalstore.Errorf(animalstore.ValidationFailed, "url must lead to an allowed address: %v", err)
}

// checkLiteral checks a host that is an address. The dialler would not see that an
// IPv4 address was spelled as IPv6.
func (n *Networks) checkLiteral(u *url.URL) error {
	addr, err := netip.ParseAddr(u.Hostname())
	if err != nil {
		return nil // a name
	}
	return n.allow(addr, u.Scheme)
}
