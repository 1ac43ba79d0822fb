//go:build unix

package http1

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"
)

// largeText is more than the buffers of two sockets hold.
var largeText = sync.OnceValue(func() string {
	b := make([]byte, 16<<20)
	rand.NewChaCha8([32]byte{}).Read(b)
	return string(b)
})

// serveLarge serves text, from a buffer that the handler overwrites afterwards, at
// /large and a short text elsewhere.
func serveLarge(t *testing.T, config *tls.Config, text string) *Listener {
	server := newServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/large" {
			w.Write([]byte("small"))
			return
		}
		b := []byte(text)
		w.Header().Set("Content-Length", strconv.Itoa(len(b)))
		w.Write(b)
		copy(b, bytes.Repeat([]byte("x"), len(b)))
	}))
	l := listen(t, config, server)
	serve(t, server, l)
	return l
}

const (
	largeGet      = "GET /large HTTP/1.1\r\nHost: a\r\n\r\n"
	largeOtherGet = "GET /large HTTP/1.1\r\nHost: a\r\nPragma: x\r\n\r\n" // for net/http
)

// TestLargeWrites: large responses arrive unchanged, also while as many clients as
// could have a turn don't read theirs.
func TestLargeWrites(t *testing.T) { overBoth(t, testLargeWrites) }

func testLargeWrites(t *testing.T, config *tls.Config) {
	text := largeText()
	if config != nil {
		text = text[:len(text)/2] // it takes longer
	}
	l := serveLarge(t, config, text)
	for range 2 * cap(l.writers) {
		idler := dial(t, l)
		fmt.Fprint(idler, largeGet)
		idler.Read(make([]byte, 1)) // it has begun
	}
	for _, request := range []string{largeGet, largeOtherGet} {
		c := dial(t, l)
		for range 2 {
			fmt.Fprint(c, request)
			if got := body(t, c); got != text {
				t.Errorf("got %d bytes, want the %d bytes that were written", len(got), len(text))
			}
		}
	}
}

// TestLargeWritesTakeTurns: a large response isn't sent while others have all turns,
// and a small one is.
func TestLargeWritesTakeTurns(t *testing.T) {
	text := largeText()[:2*largeWrite]
	l := serveLarge(t, nil, text)
	for range cap(l.writers) {
		l.writers <- struct{}{}
	}
	large := dial(t, l)
	fmt.Fprint(large, largeGet)
	arrived := make(chan time.Time)
	go func() {
		if got := body(t, large); got != text {
			t.Errorf("got %d bytes, want the %d bytes that were written", len(got), len(text))
		}
		arrived <- time.Now()
	}()
	small := dial(t, l)
	for range 200 { // time enough for the large one
		if got := get(t, small); got != "small" {
			t.Fatalf("got %q, want the small response", got)
		}
	}
	released := time.Now()
	for range cap(l.writers) {
		<-l.writers
	}
	if at := <-arrived; at.Before(released) {
		t.Error("a large response was sent without a turn")
	}
	for range cap(l.writers) { // every turn was given back
		l.writers <- struct{}{}
	}
}
