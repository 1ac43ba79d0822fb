package api_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"
)

// slowSender is a ResponseWriter that, like HTTP/2 after a reset stream, still reads
// the body after the handler has returned: it keeps the slice instead of a copy.
type slowSender struct {
	header http.Header
	body   []byte
	copied []byte
}

func (w *slowSender) Header() http.Header { return w.header }
func (w *slowSender) WriteHeader(int)     {}

func (w *slowSender) Write(b []byte) (int, error) {
	w.body, w.copied = b, bytes.Clone(b)
	return len(b), nil
}

// TestBodyIsNotReusedUnderHTTP2: HTTP/2 may still be sending a page when its client
// has reset the stream and the handler has returned. So the page's buffer must not be
// reused. Under HTTP/1 it is, which shows that the test would notice.
func TestBodyIsNotReusedUnderHTTP2(t *testing.T) {
	s := start(t)
	for i := range 60 {
		s.do(t, call{method: "POST", path: "/v1/pets", body: fmt.Sprintf(`{"name":"Pet %d","categoryId":7}`, i)}).want(t, 201, "")
	}
	next := func(link string) string {
		m := regexp.MustCompile(`<([^>]+)>; rel="next"`).FindStringSubmatch(link)
		if m == nil {
			t.Fatalf("got Link %q, want a next page", link)
		}
		return m[1]
	}
	// Only pages after the first use the pool: first pages are cached.
	second := next(s.do(t, call{path: "/v1/pets?limit=20"}).header.Get("Link"))
	third := next(s.do(t, call{path: second}).header.Get("Link"))

	const rounds = 50 // the pool may drop a buffer now and then
	for major, wantReuse := range map[int]bool{1: true, 2: false} {
		reused := 0
		for range rounds {
			get := func(path string) *slowSender {
				r := httptest.NewRequest("GET", path, nil)
				r.Header.Set("Authorization", "Bearer "+s.owner)
				r.ProtoMajor, r.ProtoMinor = major, 2-major
				w := &slowSender{header: http.Header{}}
				s.handler.ServeHTTP(w, r)
				return w
			}
			first, other := get(second), get(third)
			if len(first.copied) == 0 || bytes.Equal(first.copied, other.copied) {
				t.Fatalf("got the pages %q and %q, want two different ones", first.copied, other.copied)
			}
			if !bytes.Equal(first.body, first.copied) {
				reused++
			}
		}
		if (reused > 0) != wantReuse {
			t.Errorf("HTTP/%d: got %d of %d bodies overwritten by the next request, want some: %v", major, reused, rounds, wantReuse)
		}
	}
}
