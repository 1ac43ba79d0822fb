package api

import (
	"net/http"
	"net/netip"
	"net/url"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/strictjson"
)

// Internals for the tests in package api_test.

var (
	ParseInteger = strictjson.ParseInteger
	AppendPets   = appendPets
	StatusOf     = statusOf
	FollowTimes  = &followTimes
)

const (
	MaxBody        = maxBody
	HandlerTimeout = handlerTimeout
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

// ClientAddr is the address a request comes from.
func (s *Server) ClientAddr(r *http.Request) netip.Addr { return s.clientAddr(r) }

// Params reads a query the way lists do.
func Params(rawQuery string) (url.Values, error) {
	params, err := appendParams(nil, rawQuery)
	values := url.Values{}
	for _, p := range params {
		values.Add(p.name, p.value)
	}
	return values, err
}

// Large shares the work on large pages between keys.
func (s *Server) Large() *db.Turns { return s.large }
