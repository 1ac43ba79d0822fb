package http1

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
)

func reuse(w http.ResponseWriter) { w.(interface{ Reuse() }).Reuse() }

// TestReuse sends different requests on several connections to a handler that allows
// their memory to be used again. None may see anything of another.
func TestReuse(t *testing.T) {
	l := listen(t, nil, newServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer reuse(w)
		before := fmt.Sprint(len(w.Header()), r.Context().Err())
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("X-Of", r.URL.RawQuery)
		b, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s %d %v %s %s", r.Method, r.URL, r.Host, r.ContentLength, r.Header, b, before)
		r.Header["X-Added"] = []string{"by the handler"}
	})))
	var clients sync.WaitGroup
	for n := range 4 {
		c := dial(t, l)
		clients.Go(func() {
			for i := range 100 {
				id := fmt.Sprintf("%d-%d", n, i)
				many := ""
				for k := range i % 10 { // more than there is room for
					many += fmt.Sprintf("X-Field-%d: %s\r\n", k, id)
				}
				fmt.Fprintf(c, "POST /path?%s HTTP/1.1\r\nHost: %[1]s\r\n%[2]sContent-Length: 4\r\n\r\nbody", id, many)
				readText(t, c)
				fmt.Fprintf(c, "GET /?%s HTTP/1.1\r\nHost: a\r\nX-Own: %[1]s\r\n\r\n", id)
				want := fmt.Sprintf("GET /?%s a 0 map[X-Own:[%[1]s]]  0 <nil>", id)
				if res, text := readText(t, c); text != want || res.Header.Get("X-Of") != id {
					t.Errorf("got %q of %q, want %q of %q", text, res.Header.Get("X-Of"), want, id)
					return
				}
			}
		})
	}
	clients.Wait()
}

// TestNoReuseAfterDone: something may wait for the context even after the handler has
// returned, so that it must not become the context of another request.
func TestNoReuseAfterDone(t *testing.T) {
	var kept []context.Context
	l := listen(t, nil, newServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, ctx := range kept {
			if ctx == r.Context() {
				t.Error("a context is used again that somebody waited for")
			}
		}
		r.Context().Done()
		kept = append(kept, r.Context())
		w.Header().Set("Content-Type", "text/plain")
		reuse(w)
	})))
	c := dial(t, l)
	for range 20 {
		fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		readText(t, c)
	}
}
