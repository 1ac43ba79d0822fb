package api

import (
	"context"
	"net/http"
	"net/netip"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/strictjson"
)

// Internals for the tests in package api_test.

var (
	ParseInteger = strictjson.ParseInteger
	EncodePets   = encodePets
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

// InventoriesWaiting is how many requests wait for their turn to count.
func (s *Server) InventoriesWaiting() int { return s.inventories.turns.Waiting() }

const MaxInventories = maxInventories

// Inventories are the counts that a server keeps.
type Inventories struct{ i *inventories }

func NewInventories(d db.Inventory, now func() time.Time) Inventories {
	return Inventories{newInventories(d, now)}
}

func (c Inventories) Get(ctx context.Context, category int64) (age time.Duration, err error) {
	_, age, err = c.i.get(ctx, counted{category: category})
	return age, err
}

func (c Inventories) Kept() int { return len(c.i.kept) }

func (c Inventories) Made() int64 { return c.i.number }

// ClientAddr is the address a request comes from.
func (s *Server) ClientAddr(r *http.Request) netip.Addr { return s.clientAddr(r) }
