package server

import (
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
)

// opsHosts are the names and addresses under which metrics and profiles are served:
// those of the loopback interface and that of the listener. A listener on every
// address can't know under which one it is reached, so it accepts any address, which
// no web page can take over, and the machine's own name.
type opsHosts struct {
	names []string
	addr  netip.Addr // that of the listener
}

// newOpsHosts returns the hosts of a listener: listen is what was configured and addr
// what came of it.
func newOpsHosts(listen string, addr net.Addr) opsHosts {
	h := opsHosts{names: []string{"localhost"}}
	if tcp, ok := addr.(*net.TCPAddr); ok {
		h.addr, _ = netip.AddrFromSlice(tcp.IP)
		h.addr = h.addr.Unmap()
	}
	if name, _, err := net.SplitHostPort(listen); err == nil && name != "" {
		if _, err := netip.ParseAddr(name); err != nil {
			h.names = append(h.names, name)
		}
	}
	if name, err := os.Hostname(); err == nil && name != "" && h.addr.IsUnspecified() {
		h.names = append(h.names, name)
	}
	return h
}

// include reports whether a request with this Host header is for this server.
func (h opsHosts) include(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if err != nil {
		host = strings.TrimSuffix(host, ".")
		return slices.ContainsFunc(h.names, func(name string) bool { return strings.EqualFold(name, host) })
	}
	addr = addr.WithZone("").Unmap()
	return addr.IsLoopback() || addr == h.addr || h.addr.IsUnspecified()
}

// String lists the hosts for people.
func (h opsHosts) String() string {
	shown := strings.Join(h.names, ", ") + ", 127.0.0.1, [::1]"
	switch {
	case h.addr.IsUnspecified():
		return shown + " or any other address of this machine"
	case h.addr.IsValid() && !h.addr.IsLoopback():
		return shown + " or " + h.addr.String()
	}
	return shown
}
