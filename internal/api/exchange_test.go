package api

import (
	"net/http"
	"testing"
)

// reusable is a writer of package http1.
type reusable struct {
	http.ResponseWriter
	reused bool
}

func (w *reusable) Reuse() { w.reused = true }

// TestReuse: the memory of a request is used again only if nothing else can use it.
func TestReuse(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(*exchange)
		want bool
	}{
		"a read":          {func(*exchange) {}, true},
		"not modified":    {func(x *exchange) { x.w.status = http.StatusNotModified }, true},
		"a change":        {func(x *exchange) { x.r.changes = true }, false},
		"an error":        {func(x *exchange) { x.w.status = http.StatusServiceUnavailable }, false},
		"a panic":         {func(x *exchange) { x.returned = false }, false},
		"one that waited": {func(x *exchange) { x.r.ctx.Done() }, false},
		"not a plain one": {func(x *exchange) { x.w.ResponseWriter = x.w.ResponseWriter.(*reusable).ResponseWriter }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := new(reusable)
			x := &exchange{w: response{ResponseWriter: w, status: http.StatusOK}, returned: true}
			x.r.ctx.Context, x.r.id = t.Context(), "kept"
			c.end(x)
			x.end()
			if emptied := x.r.id == ""; w.reused != c.want || emptied != c.want {
				t.Errorf("reused %t and emptied %t, want both %t", w.reused, emptied, c.want)
			}
		})
	}
}
