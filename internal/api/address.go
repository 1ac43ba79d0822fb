package api

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// clientAddr is the address a request comes from: the peer, or if that is a
// trusted proxy, the last hop in X-Forwarded-For that isn't one. Everything to
// the left of that hop may be forged.
func (s *Server) clientAddr(r *http.Request) netip.Addr {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{} // not TCP: all such clients count as one
	}
	addr := peer.Addr().Unmap()
	if len(s.proxies) == 0 {
		return addr
	}
	hops := strings.Split(strings.Join(r.Header["X-Forwarded-For"], ","), ",")
	for _, hop := range slices.Backward(hops) {
		if !s.trusted(addr) {
			break
		}
		next, err := parseHop(strings.TrimSpace(hop))
		if err != nil {
			break
		}
		addr = next
	}
	return addr
}

func (s *Server) trusted(addr netip.Addr) bool {
	return slices.ContainsFunc(s.proxies, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// parseHop reads an address with or without a port: proxies write both.
func parseHop(hop string) (netip.Addr, error) {
	if withPort, err := netip.ParseAddrPort(hop); err == nil {
		return withPort.Addr().Unmap(), nil
	}
	addr, err := netip.ParseAddr(strings.Trim(hop, "[]"))
	return addr.Unmap(), err
}
