package http1

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// TestHandlerCannotReachNextRequest: a handler keeps everything it gets and uses it
// from another goroutine while the next request on the connection is being served. That
// request consists of the same bytes.
func TestHandlerCannotReachNextRequest(t *testing.T) {
	const request = "POST /path?query HTTP/1.1\r\nHost: a\r\nX-Kept: one\r\nContent-Length: 4\r\n\r\nbody"
	type kept struct {
		w      http.ResponseWriter
		r      *http.Request
		header http.Header
		out    http.Header
	}
	var (
		first   *kept
		late    sync.WaitGroup
		wrote   error
		content []byte
	)
	misuse := func(k *kept) {
		k.r.Header["X-Kept"][0] = "changed"
		k.header.Set("X-Kept", "changed again")
		k.header["X-Added"] = []string{"added"}
		k.r.URL.Path, k.r.URL.RawQuery = "/changed", "changed"
		k.r.Host, k.r.Method = "changed", "PUT"
		k.out.Set("X-Late", "late")
		k.w.Header()["X-Seen"][0] = "late"
		k.w.WriteHeader(http.StatusTeapot)
		_, wrote = k.w.Write(bytes.Repeat([]byte("late"), flushSize))
		content, _ = io.ReadAll(k.r.Body)
		<-k.r.Context().Done()
	}
	l := listen(t, newServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("X-Seen", "seen")
		if first == nil {
			first = &kept{w, r, r.Header, w.Header()}
			io.WriteString(w, "first")
			return
		}
		late.Go(func() { misuse(first) })
		show := func() string {
			b, err := io.ReadAll(r.Body)
			return fmt.Sprintf("%s %s?%s %s %v %s %v %v\n", r.Method, r.URL.Path, r.URL.RawQuery, r.Host, r.Header, b, err, r.Context().Err())
		}
		during := show()
		late.Wait()
		io.WriteString(w, during+show())
	})))
	c := dial(t, l)
	for i, want := range []string{
		"first",
		"POST /path?query a map[Content-Length:[4] X-Kept:[one]] body <nil> <nil>\nPOST /path?query a map[Content-Length:[4] X-Kept:[one]]  <nil> <nil>\n",
	} {
		io.WriteString(c, request)
		res, text := readText(t, c)
		if text != want || res.StatusCode != 200 || res.Header.Get("X-Late") != "" || res.Header.Get("X-Seen") != "seen" {
			t.Errorf("request %d: got %d %v\n%s\nwant 200\n%s", i, res.StatusCode, res.Header, text, want)
		}
	}
	if wrote == nil {
		t.Error("a write after the handler returned: got nil, want an error")
	}
	if string(content) != "body" {
		t.Errorf("the kept body: got %q, want the first request's content", content)
	}
	// The connection still works.
	fmt.Fprint(c, "GET /again HTTP/1.1\r\nHost: a\r\n\r\n")
	if _, text := readText(t, c); !strings.HasPrefix(text, "GET /again") {
		t.Errorf("afterwards: got %q, want GET /again", text)
	}
}
