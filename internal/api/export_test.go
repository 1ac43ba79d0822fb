package api

import (
	"net/http"
	"net/netip"

	"animalstore"
)

// Internals for the tests in package api_test.

var (
	EncodePets  = encodePets
	FollowTimes = &followTimes
)

const (
	MaxBody        = maxBody
	RequestTimeout = requestTimeout
)

// Operation is one row of the route table.
type Operation struct {
	Method, Path, ID string
	Permission       animalstore.Permissions
}

// Operations is the route table.
func Operations() []Operation {
	all := make([]Operation, len(routes))
	for i, r := range routes {
		all[i] = Operation{r.method, r.path, r.operation, r.permission}
	}
	return all
}

// InventoriesWaiting is how many requests wait for their turn to count.
func (s *Server) InventoriesWaiting() int { return s.inventories.slot.Waiting() }

// UseUp makes all requests without a valid key that an address may make in a minute.
func (s *Server) UseUp(addr netip.Addr) {
	for s.anonymous.Take(addr).Allowed {
	}
}

// ClientAddr is the address a request comes from.
func (s *Server) ClientAddr(r *http.Request) netip.Addr { return s.clientAddr(r) }
