package api

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/keys"
)

// authenticate sets the key of a request. A request that is refused here is charged to the
// address it comes from, and its key is left alone: a thief who can't use a key can't use
// up its limits either.
func (s *Server) authenticate(w http.ResponseWriter, r *request) error {
	key, err := s.checkCredential(r)
	if key != nil {
		r.keyID = key.ID
	}
	if err == nil {
		err = s.checkAccess(r.Request, key)
	}
	if err == nil {
		r.key = key
		return nil
	}
	if status := publicError(err).Code.Status(); status != http.StatusUnauthorized && status != http.StatusForbidden {
		// The key may be valid, so nothing is charged.
		setLimitHeaders(w, s.anonymous.Peek(s.clientAddr(r.Request)))
		return err
	}
	d := s.anonymous.Take(s.clientAddr(r.Request))
	setLimitHeaders(w, d)
	if !d.Allowed {
		return animalstore.Errorf(d.Code,
			"too many unauthenticated requests from your address: retry in %d s with a valid key", d.RetryAfter)
	}
	return err
}

// checkCredential returns the key of a request: that of its bearer token, or of the
// session it is from.
func (s *Server) checkCredential(r *request) (*animalstore.Key, error) {
	if r.session != nil {
		return s.Keys.CheckHash(r.Context(), *r.session)
	}
	token, err := bearerToken(r.Header)
	if err != nil {
		return nil, err
	}
	return s.Keys.Check(r.Context(), token)
}

// checkAccess returns an error if a valid key is suspended or doesn't work from the address
// of the request.
func (s *Server) checkAccess(r *http.Request, key *animalstore.Key) error {
	switch {
	case key.Suspended():
		return animalstore.Errorf(animalstore.KeySuspended, "this API key is suspended: ask its administrator to resume it")
	case key.Networks != "" && !key.Networks.Allow(s.clientAddr(r)):
		return animalstore.Errorf(animalstore.AddressNotAllowed, "this API key doesn't work from your address: use it in its networks, or ask its administrator to add yours")
	}
	return nil
}

// secretHash is the hash of the secret of a request whose credential is valid.
func (r *request) secretHash() db.KeyHash {
	if r.session != nil {
		return *r.session
	}
	token, _ := bearerToken(r.Header)
	return keys.Hash(token)
}

// bearerToken returns the token of the Authorization header.
func bearerToken(h http.Header) (string, error) {
	values := h["Authorization"]
	if len(values) > 1 {
		return "", animalstore.Errorf(animalstore.InvalidAPIKey, "more than one Authorization header was sent: send one")
	}
	if len(values) == 1 {
		scheme, token, _ := strings.Cut(values[0], " ")
		token = strings.Trim(token, " ")
		if strings.EqualFold(scheme, "Bearer") && token != "" {
			return token, nil
		}
	}
	return "", animalstore.Errorf(animalstore.MissingAPIKey, "an API key is needed: send it as the header Authorization: Bearer <API_KEY>")
}

// clientAddr is the address a request comes from: the peer, or if that is a
// trusted proxy, the last hop in X-Forwarded-For that isn't one. Everything to
// the left of that hop may be forged.
func (s *Server) clientAddr(r *http.Request) netip.Addr {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{} // not TCP: all such clients count as one
	}
	addr := peer.Addr().Unmap()
	if len(s.TrustedProxies) == 0 {
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
	return slices.ContainsFunc(s.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// parseHop reads an address with or without a port: proxies write both.
func parseHop(hop string) (netip.Addr, error) {
	if withPort, err := netip.ParseAddrPort(hop); err == nil {
		return withPort.Addr().Unmap(), nil
	}
	addr, err := netip.ParseAddr(strings.Trim(hop, "[]"))
	return addr.Unmap(), err
}
