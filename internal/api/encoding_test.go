package api_test

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"animalstore"
)

// TestLargePagesTakeTurns: only as many large pages are encoded at once as there are
// processors. Meanwhile small pages don't wait.
func TestLargePagesTakeTurns(t *testing.T) {
	s := start(t)
	long := strings.Repeat("x", animalstore.MaxNameLength)
	for range 40 {
		s.do(t, call{method: "POST", path: "/v1/pets", body: `{"name":"` + long + `","categoryId":1}`}).want(t, 201, "")
	}
	const someKey = 1 << 40
	turns := s.handler.Encoding()
	for range runtime.GOMAXPROCS(0) {
		if err := turns.Take(t.Context(), someKey); err != nil {
			t.Fatal(err)
		}
	}
	large := make(chan bool)
	go func() {
		s.do(t, call{path: "/v1/pets?limit=40"}).want(t, 200, "")
		close(large)
	}()
	for deadline := time.Now().Add(time.Minute); turns.Waiting() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("a large page doesn't wait for its turn")
		}
	}
	s.do(t, call{path: "/v1/pets?limit=1"}).want(t, 200, "")
	for range runtime.GOMAXPROCS(0) {
		turns.Done(someKey)
	}
	<-large
	if n := turns.Waiting(); n != 0 {
		t.Errorf("%d requests still wait", n)
	}
	for range runtime.GOMAXPROCS(0) { // every turn was given back
		if err := turns.Take(t.Context(), someKey); err != nil {
			t.Fatal(err)
		}
	}
}
