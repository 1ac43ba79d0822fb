package console_test

import (
	"bufio"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"animalstore"
)

// TestEvents: the feed with its filters, and who did it, for admins only.
func TestEvents(t *testing.T) {
	t.Parallel()
	s := start(t)
	admin, reader := s.signedIn(everything), s.signedIn(animalstore.Read)
	form := admin.get("/console/pets/new").form(t, "/console/pets", "name", "Rex <b>", "categoryId", "7")
	admin.post("/console/pets", form)
	pet := admin.get("/console/pets/1")
	admin.post("/console/orders", pet.form(t, "/console/orders"))

	p := admin.get("/console/events")
	p.want(t, "the feed", http.StatusOK, "pet.created", "order.created", "pet.updated", "key.created", `<a href="/console/pets/1">pet/1</a>`, "<bdi>Rex &lt;b&gt;</bdi>, <bdi>available</bdi>", `<a href="/console/keys/1">key 1</a> <small>`, "command line")
	if first, last := strings.Index(p.body, "key.created"), strings.LastIndex(p.body, "order.created"); strings.LastIndex(p.body, "<td>key.created") < strings.LastIndex(p.body, "<td>order.created") {
		t.Errorf("the oldest event comes first (%d, %d), want the newest:\n%s", first, last, p.body)
	}
	for filter, hidden := range map[string][]string{
		"type=pet.*": {"order.created", "key.created"}, "subject=pet%2F1": {"order.created", "key.created"}, "type=pet.updated&subject=pet%2F1": {"pet.created"},
	} {
		p = admin.get("/console/events?" + filter)
		p.want(t, filter, http.StatusOK, "<td>pet.updated</td>")
		for _, other := range hidden {
			if strings.Contains(p.body, "<td>"+other+"</td>") {
				t.Errorf("%s: the filtered feed has %s:\n%s", filter, other, p.body)
			}
		}
	}
	p = reader.get("/console/events")
	p.want(t, "as a reader", http.StatusOK, "<td>pet.created</td>")
	for _, hidden := range []string{"key.created", "/console/keys", "<th scope=\"col\">By</th>", "webhook"} {
		if strings.Contains(p.body, hidden) {
			t.Errorf("a reader sees %q:\n%s", hidden, p.body)
		}
	}
	admin.get("/console").want(t, "the overview", http.StatusOK, "Latest events", "<td>order.created</td>", "data-stream=")
	pet = admin.get("/console/pets/1")
	pet.want(t, "the history", http.StatusOK, "<b>pet.created</b>", "<b>pet.updated</b>", "by <a href=\"/console/keys/1\">")
	if strings.Index(pet.body, "pet.updated") > strings.Index(pet.body, "pet.created") {
		t.Error("the history begins with the oldest event, want the newest")
	}

	for i := range 120 {
		s.pet(fmt.Sprint("pet ", i))
	}
	p = admin.get("/console/events")
	p.want(t, "the last page", http.StatusOK, "<bdi>pet 119</bdi>", "<bdi>pet 70</bdi>", "Older")
	if strings.Contains(p.body, "<bdi>pet 69</bdi>") || strings.Contains(p.body, "Newer") {
		t.Errorf("the last page has more than 50 events, or a newer page:\n%s", p.body)
	}
	older := strings.ReplaceAll(regexpFind(t, p.body, `href="(/console/events\?after=\d+)">Older`), "&amp;", "&")
	admin.get(older).want(t, "the page before", http.StatusOK, "<bdi>pet 69</bdi>", "<bdi>pet 20</bdi>", "Newer")
}

// TestHistoryInALargeStore: the page of a pet and the feed of one subject show all of its
// events, however many others there are.
func TestHistoryInALargeStore(t *testing.T) {
	t.Parallel()
	s := start(t)
	admin := s.signedIn(everything)
	pet := s.pet("Rex")
	rename := func(n int) {
		t.Helper()
		if _, err := s.db.UpdatePet(t.Context(), pet.ID, func(p *animalstore.Pet, _ bool) error { p.Name = fmt.Sprint("Rex ", n); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	var others sync.WaitGroup
	for i := range 16 {
		others.Go(func() {
			for n := range 80 {
				c := animalstore.Category{ID: int64(1000*i + n), Name: "other"}
				if _, err := s.db.PutCategory(t.Context(), c, func(*animalstore.Category) error { return nil }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	others.Wait()
	rename(1)
	path := fmt.Sprint("/console/pets/", pet.ID)
	p := admin.get(path)
	p.want(t, "the history", http.StatusOK, "<b>pet.created</b>", "<b>pet.updated</b>")
	if strings.Contains(p.body, "Later events") {
		t.Errorf("two events have later ones:\n%s", p.body)
	}
	feed := fmt.Sprintf("/console/events?subject=pet%%2F%d", pet.ID)
	p = admin.get(feed)
	p.want(t, "the feed of the pet", http.StatusOK, "<td>pet.created</td>", "<td>pet.updated</td>")
	if strings.Contains(p.body, "Older") || strings.Contains(p.body, "Newer") {
		t.Errorf("two events are more than a page:\n%s", p.body)
	}
	for n := range 100 {
		rename(2 + n)
	}
	p = admin.get(path)
	p.want(t, "a long history", http.StatusOK, "<b>pet.created</b>", "<bdi>Rex 99</bdi>", "Later events of this pet")
	later := strings.ReplaceAll(regexpFind(t, p.body, `href="(/console/events\?[^"]+)">Later events`), "&amp;", "&")
	p = admin.get(later)
	p.want(t, "the later events", http.StatusOK, "<bdi>Rex 100</bdi>", "<bdi>Rex 101</bdi>")
	if strings.Contains(p.body, "<bdi>Rex 99</bdi>") {
		t.Errorf("the later events begin too early:\n%s", p.body)
	}
}

// TestStream: what happens is shown as it happens, for one request, until the session
// ends.
func TestStream(t *testing.T) {
	t.Parallel()
	s := start(t)
	secret, _ := s.key("shop", everything, 1<<30)
	b := s.browser()
	b.signIn(secret)
	before := s.left(secret)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/console/events/stream?after=latest&type=pet.created", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.AddCookie(&http.Cookie{Name: "animalstore_session", Value: b.cookie})
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("got %d %s, want a stream", res.StatusCode, res.Header)
	}
	lines := make(chan string, 100)
	go func() {
		defer close(lines)
		for scan := bufio.NewScanner(res.Body); scan.Scan(); {
			if strings.HasPrefix(scan.Text(), "data:") {
				lines <- scan.Text()
			}
		}
	}()
	s.pet("Rex")
	select {
	case line := <-lines:
		if !strings.Contains(line, `"name":"Rex"`) {
			t.Errorf("got %q, want the new pet", line)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("got nothing, want the new pet")
	}
	if got := before - s.left(secret) - 1; got != 1 {
		t.Errorf("got %d requests charged, want 1", got)
	}
	b.post("/console/sign-out", url.Values{})
	select {
	case line, more := <-lines:
		if more {
			t.Errorf("after signing out: got %q, want the end", line)
		}
	case <-time.After(30 * time.Second):
		t.Error("after signing out, the stream goes on, want its end")
	}
}
