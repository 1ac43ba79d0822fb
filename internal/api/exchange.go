package api

import (
	"net/http"
	"sync"
)

// exchange is what the server knows about a request and its response.
type exchange struct {
	w        response
	r        request
	returned bool // the handler did, without a panic
}

// exchanges can be used again: they are empty. Nearly all that a read allocates would be
// its exchange and that of package http1, and on two processors the garbage collector
// delays requests by milliseconds each time it runs.
var exchanges = sync.Pool{New: func() any { return new(exchange) }}

// end lets another request use the memory of a plain one, if nothing else does. That is
// sure after a read that succeeded and never waited: what goes on after a response was
// never given its request, its writer or its context.
func (x *exchange) end() {
	plain, ok := x.w.ResponseWriter.(interface{ Reuse() })
	succeeded := x.w.status == http.StatusOK || x.w.status == http.StatusNotModified
	if !ok || !x.returned || x.r.changes || !succeeded || x.r.ctx.waited() {
		return
	}
	plain.Reuse()
	*x = exchange{}
	exchanges.Put(x)
}
