package api_test

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"animalstore"
)

// TestLargePagesTakeTurns: large pages leave a processor to everything else, if there
// are several. While they wait, small pages don't.
func TestLargePagesTakeTurns(t *testing.T) {
	s := start(t)
	long := strings.Repeat("x", animalstore.MaxNameLength)
	for range 40 {
		s.do(t, call{method: "POST", path: "/v1/pets", body: `{"name":"` + long + `","categoryId":1}`}).want(t, 201, "")
	}
	const someKey = 1 << 40
	turns, slots := s.handler.Large(), max(1, runtime.GOMAXPROCS(0)-1)
	for range slots {
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
	for range slots {
		turns.Done(someKey)
	}
	<-large
	if n := turns.Waiting(); n != 0 {
		t.Errorf("%d requests still wait", n)
	}
	for range slots { // every turn was given back
		if err := turns.Take(t.Context(), someKey); err != nil {
			t.Fatal(err)
		}
	}
}
