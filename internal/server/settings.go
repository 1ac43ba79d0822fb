package server

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// These check settings for a [Config]. The errors call a setting by the given name,
// such as that of a flag.

// CheckListenAddress refuses anything but an address and a port.
func CheckListenAddress(name, listen string) error {
	_, port, err := net.SplitHostPort(listen)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil || port == "" {
		return fmt.Errorf("%s must be an address and a port, such as 127.0.0.1:8080 or :8080 for every address, not %q", name, listen)
	}
	return nil
}

// ParseProxies reads the networks of [Config.TrustedProxies]. An address is a network
// of one.
func ParseProxies(name string, networks []string) ([]netip.Prefix, error) {
	var prefixes []netip.Prefix
	for _, n := range networks {
		prefix, err := netip.ParsePrefix(n)
		if addr, addrErr := netip.ParseAddr(n); addrErr == nil {
			prefix, err = netip.PrefixFrom(addr, addr.BitLen()), nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %q is not a network: write it like 10.0.0.0/8 or 192.0.2.7", name, n)
		}
		prefixes = append(prefixes, prefix.Masked())
	}
	return prefixes, nil
}

// CheckOrigins refuses values of [Config.CORSOrigins] that no browser sends as an
// origin.
func CheckOrigins(name string, origins []string) error {
	for _, o := range origins {
		scheme, host, ok := strings.Cut(o, "://")
		if !ok || scheme != "http" && scheme != "https" || host == "" || strings.ContainsAny(host, "/*? ") {
			return fmt.Errorf("%s: %q is not an origin: write it like https://shop.example, without a path", name, o)
		}
	}
	return nil
}
