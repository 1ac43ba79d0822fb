package console_test

import (
	"net/http"
	"strings"
	"testing"

	"animalstore"
)

// TestFailures: the page shows failed requests with what to do about them, to every key its
// own, and finds one by the id that a customer sends.
func TestFailures(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.Pet("Rex")
	reader, admin := s.signedIn(animalstore.Read), s.signedIn(everything)
	reader.get("/console/categories/4711").want(t, "an absent category", http.StatusNotFound)
	admin.get("/console/orders/4712").want(t, "an absent order", http.StatusNotFound)
	const categoryGuide, orderGuide = `href="/docs/guides/callers#category-not-found"`, `href="/docs/guides/callers#order-not-found"`
	if err := s.Server.Save(t.Context()); err != nil {
		t.Fatal(err)
	}
	admin.get("/console/failures").want(t, "all failures", http.StatusOK, categoryGuide, orderGuide, "Requests of all keys")
	own := reader.get("/console/failures")
	own.want(t, "own failures", http.StatusOK, categoryGuide, "GET <bdi>/v1/categories/4711</bdi>", "there is no category with this id", "Requests of your key")
	if strings.Contains(own.body, orderGuide) || strings.Contains(own.body, `name="key"`) {
		t.Errorf("got failures of others, or their filter, in\n%s", own.body)
	}
	id := regexpFind(t, own.body, `data-label="Request id"><bdi>([^<]+)`)
	admin.get("/console/failures?request="+id).want(t, "by its id", http.StatusOK, categoryGuide, id)
	for query, shows := range map[string]bool{"code=category_not_found": true, "code=order_not_found": false, "key=999": false, "since=2026-01-01": true, "since=2099-01-01": false} {
		if got := strings.Contains(admin.get("/console/failures?"+query).body, categoryGuide); got != shows {
			t.Errorf("%s: shown %t, want %t", query, got, shows)
		}
	}
	for code, offered := range map[animalstore.Code]bool{animalstore.StorageFull: true, animalstore.InvalidAPIKey: false, animalstore.Unavailable: false} {
		if got := strings.Contains(own.body, "<option>"+string(code)+"</option>"); got != offered {
			t.Errorf("%s: to choose from %t, want %t", code, got, offered)
		}
	}
	admin.get("/console/failures?request=a+b").want(t, "an id that isn't one", http.StatusBadRequest, "A request id has")
	admin.get("/console/failures?key=x").want(t, "a key that isn't one", http.StatusBadRequest, "An id is")
	admin.get("/console/keys/1").want(t, "the page of a key", http.StatusOK, `href="/console/failures?key=1"`)
}
