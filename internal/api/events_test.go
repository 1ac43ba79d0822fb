package api_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/keys"
	"animalstore/internal/testenv"
)

// eventPage is a page of events and the path of the next.
type eventPage struct {
	events []animalstore.Event
	next   string
}

var nextEvents = regexp.MustCompile(`^<(/v1/events\?[^>]+)>; rel="next"$`)

func (s *service) events(t testing.TB, key, query string) eventPage {
	t.Helper()
	return readEventPage(t, s.do(t, call{path: "/v1/events" + query, key: key}))
}

func readEventPage(t testing.TB, got response) eventPage {
	t.Helper()
	var p eventPage
	link := nextEvents.FindStringSubmatch(got.header.Get("Link"))
	if err := json.Unmarshal(got.body, &p.events); err != nil || got.status != http.StatusOK || link == nil || p.events == nil {
		t.Fatalf("got %v, Link %q, want a page of events and a link to the next", got, got.header.Get("Link"))
	}
	p.next = link[1]
	return p
}

// follow returns the next n events from a path on, however many pages they take.
func (s *service) follow(t testing.TB, key, path string, n int) eventPage {
	t.Helper()
	page := eventPage{next: path}
	for deadline := time.Now().Add(time.Minute); len(page.events) < n; {
		if time.Now().After(deadline) {
			t.Fatalf("got %d events, want %d: %v", len(page.events), n, page.events)
		}
		p := readEventPage(t, s.do(t, call{path: page.next, key: key}))
		page.events, page.next = append(page.events, p.events...), p.next
	}
	return page
}

// latest is the path of the events that happen from now on.
func (s *service) latest(t testing.TB, key, query string) string {
	t.Helper()
	return s.events(t, key, "?after=latest").next + query
}

func typesOf(events []animalstore.Event) (types []string) {
	for _, e := range events {
		types = append(types, string(e.Type)+" "+e.Subject)
	}
	return types
}

// TestEventsOfEveryChange makes each kind of change and expects its events, with the
// resource as a GET shows it.
func TestEventsOfEveryChange(t *testing.T) {
	s := start(t)
	path := s.latest(t, s.admin, "&wait=5")
	for _, step := range []struct {
		name, method, path, body string
		want                     []string
		get                      string // the resource of the first event
	}{
		{"a pet", "POST", "/v1/pets", `{"name":"Rex <&>","categoryId":7}`, []string{"pet.created pet/1", "category.updated category/7"}, "/v1/pets/1"},
		{"its change", "PATCH", "/v1/pets/1", `{"name":"Max"}`, []string{"pet.updated pet/1"}, "/v1/pets/1"},
		{"an order", "POST", "/v1/store/orders", `{"petId":1}`, []string{"order.created order/1", "pet.updated pet/1"}, "/v1/store/orders/1"},
		{"its step", "PATCH", "/v1/store/orders/1", `{"status":"cancelled"}`, []string{"order.updated order/1", "pet.updated pet/1"}, "/v1/store/orders/1"},
		{"a category", "PUT", "/v1/categories/7", `{"name":"dogs"}`, []string{"category.updated category/7"}, "/v1/categories/7"},
		{"a key", "POST", "/v1/keys", `{"name":"shop"}`, []string{"key.created key/3"}, "/v1/keys/3"},
		{"its change", "PATCH", "/v1/keys/3", `{"name":"till"}`, []string{"key.updated key/3"}, "/v1/keys/3"},
		{"its rotation", "POST", "/v1/keys/3/rotate", "", []string{"key.rotated key/3"}, "/v1/keys/3"},
		{"its end", "DELETE", "/v1/keys/3", "", []string{"key.revoked key/3"}, "/v1/keys/3"},
		{"its end", "DELETE", "/v1/pets/1", "", []string{"pet.deleted pet/1"}, ""},
	} {
		id := "request-of-" + strings.ReplaceAll(step.name, " ", "-")
		got := s.do(t, call{method: step.method, path: step.path, body: step.body, key: s.admin, header: http.Header{"X-Request-Id": {id}}})
		if got.status >= 300 {
			t.Fatalf("%s: got %v", step.name, got)
		}
		page := s.follow(t, s.admin, path, len(step.want))
		path = page.next
		if types := typesOf(page.events); !slices.Equal(types, step.want) {
			t.Errorf("%s: got events %q, want %q", step.name, types, step.want)
		}
		for _, e := range page.events {
			if e.Actor != animalstore.ActorKey || e.KeyID == nil || *e.KeyID != 2 || e.RequestID == nil || *e.RequestID != id || !e.Time.Equal(s.clock.Now()) && time.Since(e.Time.Time) > time.Hour {
				t.Errorf("%s: got event %+v, want the key, the request and the time of the change", step.name, e)
			}
		}
		if step.get == "" {
			continue
		}
		if data, want := page.events[0].Data, bytes.TrimSpace(s.do(t, call{path: step.get, key: s.admin}).body); !bytes.Equal(data, want) {
			t.Errorf("%s: got data %s, want %s", step.name, data, want)
		}
	}
}

// TestEventPages: pages of any size and filter show the same events in the same order.
func TestEventPages(t *testing.T) {
	s := start(t)
	path := s.latest(t, "", "")
	for i := range 30 {
		s.do(t, call{method: "POST", path: "/v1/pets", body: fmt.Sprintf(`{"name":"pet %d","categoryId":1}`, i)}).want(t, 201, "")
	}
	s.do(t, call{method: "PATCH", path: "/v1/pets/2", body: `{"status":"sold"}`}).want(t, 200, "")
	all := s.follow(t, "", path+"&wait=5", 32).events
	for i := range all[1:] {
		if all[i+1].ID <= all[i].ID {
			t.Errorf("got event %d after %d, want rising ids", all[i+1].ID, all[i].ID)
		}
	}
	after := fmt.Sprint("?after=", all[0].ID-1)
	for _, test := range []struct {
		query string
		want  int
	}{
		{"&limit=1", 32}, {"&limit=7", 32}, {"&limit=100", 32}, {"", 32},
		{"&type=pet.created", 30}, {"&type=pet.*&limit=3", 31}, {"&type=category.updated,pet.updated", 2}, {"&type=pet.updated&type=category.updated", 2},
		{"&subject=pet/2", 2}, {"&subject=pet/2&type=pet.updated", 1}, {"&subject=category/1&limit=1", 1}, {"&type=order.*", 0}, {"&subject=order/1", 0},
	} {
		page := eventPage{next: "/v1/events" + after + test.query}
		var got []animalstore.Event
		for {
			p := readEventPage(t, s.do(t, call{path: page.next}))
			got = append(got, p.events...)
			if page.next == p.next || len(got) > 32 {
				break
			}
			page.next = p.next
		}
		if len(got) != test.want || !slices.IsSortedFunc(got, func(a, b animalstore.Event) int { return int(a.ID - b.ID) }) {
			t.Errorf("%s: got %q, want %d events in order", test.query, typesOf(got), test.want)
		}
		if end := fmt.Sprint("after=", all[31].ID); !strings.Contains(page.next, end) {
			t.Errorf("%s: got the last link %s, want %s in it: behind what doesn't match, too", test.query, page.next, end)
		}
	}
}

// TestEventsBackwards: before leads from the newest event back to the oldest, and ends there.
func TestEventsBackwards(t *testing.T) {
	s := start(t)
	for i := range 30 {
		s.do(t, call{method: "POST", path: "/v1/pets", body: fmt.Sprintf(`{"name":"pet %d","categoryId":1}`, i)}).want(t, 201, "")
	}
	s.do(t, call{method: "PATCH", path: "/v1/pets/2", body: `{"status":"sold"}`}).want(t, 200, "")
	for _, test := range []struct {
		key, query string
		want       int
	}{
		{"", "", 32}, {"", "&limit=1", 32}, {"", "&limit=7", 32}, {"", "&limit=100", 32}, {"", "&type=pet.created&limit=4", 30}, {"", "&subject=pet/2", 2}, {"", "&subject=pet/2&limit=1", 2},
		{"", "&type=key.*", 0}, {s.admin, "&type=key.*", 2}, {"", "&subject=order/1", 0}, {s.admin, "&limit=5", 34},
	} {
		var got []animalstore.Event
		for path, calls := "/v1/events?before=latest"+test.query, 0; path != "" && calls < 50; calls++ {
			page := s.do(t, call{path: path, key: test.key})
			page.want(t, 200, "")
			var events []animalstore.Event
			if err := json.Unmarshal(page.body, &events); err != nil || events == nil {
				t.Fatalf("%s: got %s (%v), want a list", path, page.body, err)
			}
			got, path = append(got, events...), ""
			if link := nextEvents.FindStringSubmatch(page.header.Get("Link")); link != nil {
				path = link[1]
			}
		}
		if len(got) != test.want || !slices.IsSortedFunc(got, func(a, b animalstore.Event) int { return int(b.ID - a.ID) }) {
			t.Errorf("%s: got %q, want %d events, newest first", test.query, typesOf(got), test.want)
		}
	}
	newest, err := s.db.PublishEvents(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := s.do(t, call{path: fmt.Sprint("/v1/events?before=", newest+1)}); got.status != 410 {
		t.Errorf("before one that doesn't exist yet: got %v, want 410", got)
	}
	s.do(t, call{path: "/v1/events?before=5", header: http.Header{"Accept": {"text/event-stream"}}, bad: true}).want(t, 400, "invalid_parameter")
}

func TestEventQueryIsChecked(t *testing.T) {
	s := start(t).inProcess()
	for _, test := range []struct{ query, parameter string }{
		{"after=-1", "after"}, {"after=01", "after"}, {"after=", "after"}, {"after=newest", "after"}, {"after=9223372036854775808", "after"}, {"after=1&after=2", "after"},
		{"type=", "type"}, {"type=pet", "type"}, {"type=pet.created,", "type"}, {"type=dog.*", "type"}, {"type=*", "type"}, {"type=Pet.created", "type"},
		{"subject=", "subject"}, {"subject=pet", "subject"}, {"subject=pets/1", "subject"}, {"subject=pet/01", "subject"}, {"subject=pet/x", "subject"}, {"subject=pet/1&subject=pet/2", "subject"},
		{"limit=0", "limit"}, {"limit=101", "limit"}, {"limit=1.0", "limit"}, {"limit=5&limit=5", "limit"},
		{"wait=-1", "wait"}, {"wait=31", "wait"}, {"wait=1.5", "wait"}, {"wait=", "wait"}, {"wait=01", "wait"}, {"wait=1&wait=1", "wait"},
		{"before=0", "before"}, {"before=-1", "before"}, {"before=", "before"}, {"before=newest", "before"}, {"before=1&before=2", "before"},
		{"before=5&after=1", "before"}, {"before=latest&wait=0", "before"},
		{"after=%zz", "query"},
	} {
		got := s.do(t, call{path: "/v1/events?" + test.query, bad: true})
		got.want(t, 400, "invalid_parameter")
		got.wantMessage(t, test.parameter)
	}
	for _, query := range []string{"", "?unknown=1", "?after=0", "?after=latest", "?wait=0", "?subject=category/-5", "?type=webhook.*", "?limit=100"} {
		s.events(t, "", query)
	}
}

func TestEventsExpire(t *testing.T) {
	s := start(t)
	s.add(t, animalstore.NewPet{Name: "Rex"}, animalstore.NewPet{Name: "Mia"})
	newest, err := s.db.PublishEvents(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := s.do(t, call{path: fmt.Sprint("/v1/events?after=", newest+1)})
	got.want(t, 410, "events_expired")
	s.do(t, call{path: fmt.Sprint("/v1/events?wait=30&after=", newest+1)}).want(t, 410, "events_expired")
	if dropped, err := s.db.DropEvents(t.Context(), animalstore.At(time.Now().Add(time.Hour)), 3); err != nil || dropped != 3 {
		t.Fatalf("got %d dropped, %v, want 3", dropped, err)
	}
	for after, want := range map[string]int{"0": 410, "2": 410, "3": 200, fmt.Sprint(newest): 200} {
		if got := s.do(t, call{path: "/v1/events?after=" + after}); got.status != want {
			t.Errorf("after %s: got %v, want %d", after, got, want)
		}
	}
	if page := s.events(t, s.admin, ""); len(page.events) == 0 || page.events[0].ID != 4 {
		t.Errorf("without after: got %v, want the oldest that is kept first", page.events)
	}
}

// beginWaiting sends a request and returns once it waits for events. The response follows.
func (s *service) beginWaiting(t testing.TB, c call) <-chan response {
	t.Helper()
	got := make(chan response, 1)
	go func() {
		r, err := s.send(t.Context(), c)
		if err != nil {
			t.Error(err)
		}
		got <- r
	}()
	testenv.Eventually(t, "a request waits", func() bool { return s.handler.Stats().Waiting == 1 })
	return got
}

// TestEventsWait: a request that waits is answered as soon as there is an event, and
// moves on over those that don't match.
func TestEventsWait(t *testing.T) {
	t.Parallel()
	s := start(t)
	path := s.latest(t, "", "&type=pet.updated&wait=30")
	waiting := s.beginWaiting(t, call{path: path})
	s.do(t, call{method: "POST", path: "/v1/pets", body: `{"name":"Rex","categoryId":7}`}).want(t, 201, "")
	s.do(t, call{method: "PATCH", path: "/v1/pets/1", body: `{"status":"sold"}`}).want(t, 200, "")
	page := readEventPage(t, <-waiting)
	if got := typesOf(page.events); !slices.Equal(got, []string{"pet.updated pet/1"}) {
		t.Errorf("got events %q, want the one that was waited for", got)
	}
	if n := s.handler.Stats().Waiting; n != 0 {
		t.Errorf("got %d requests that wait, want none", n)
	}

	s.do(t, call{method: "POST", path: "/v1/pets", body: `{"name":"Mia","categoryId":7}`}).want(t, 201, "")
	began := time.Now()
	short := readEventPage(t, s.do(t, call{path: strings.Replace(page.next, "wait=30", "wait=1", 1)}))
	if took := time.Since(began); len(short.events) != 0 || took < time.Second {
		t.Errorf("got %q after %v, want nothing after a second", typesOf(short.events), took)
	}
	if strings.Replace(short.next, "wait=1", "wait=30", 1) == page.next {
		t.Errorf("got the link %s again, want one behind the event that doesn't match", short.next)
	}
}

// TestWritersNotify: a request that waits learns of a change on the same server at once, not
// when that looks for changes of others.
func TestWritersNotify(t *testing.T) {
	t.Parallel()
	s := start(t, func(with *setup) { with.eventsEvery = time.Hour })
	st := s.openStream(t, call{path: "/v1/events?after=latest&type=pet.*"})
	waiting := s.beginWaiting(t, call{path: s.latest(t, "", "&type=pet.*&wait=30")})
	s.createPet(t, "Rex")
	if page := readEventPage(t, <-waiting); len(page.events) != 1 {
		t.Fatalf("the request that waits got %q, want the new pet", typesOf(page.events))
	}
	if e := st.next(); e.Type != animalstore.PetCreated {
		t.Errorf("the stream got %s, want the new pet", e.Type)
	}
}

// TestEventsAfterStorageFailed: a waiting request survives a database that fails for a
// while, because it doesn't use it.
func TestEventsAfterStorageFailed(t *testing.T) {
	s := start(t)
	first := s.beginWaiting(t, call{path: s.latest(t, "", "&wait=30")})
	s.createPet(t, "Mia")
	// From here on, all that the next request needs is in memory.
	waiting := s.beginWaiting(t, call{path: readEventPage(t, <-first).next})
	s.db.arm("PublishEvents", failWith(db.ErrUnavailable))
	s.db.arm("Events", failWith(db.ErrUnavailable))
	s.do(t, call{method: "POST", path: "/v1/pets", body: `{"name":"Rex","categoryId":7}`}).want(t, 201, "")
	testenv.Eventually(t, "it is logged", func() bool { return len(s.log.lines("cannot poll for events")) > 0 })
	s.do(t, call{path: "/v1/events"}).want(t, 503, "unavailable")
	s.do(t, call{path: "/v1/events?after=latest"}).want(t, 503, "unavailable")
	s.db.arm("PublishEvents", nil)
	s.db.arm("Events", nil)
	if got := readEventPage(t, <-waiting); len(got.events) == 0 {
		t.Error("got no event, want that of the pet")
	}
	if got := len(s.log.lines("cannot poll for events")); got != 1 {
		t.Errorf("got %d lines about it in the log, want 1", got)
	}
}

// TestActors: what the service and the command line change has neither a key nor a request,
// also for an admin.
func TestActors(t *testing.T) {
	s := start(t)
	path := s.latest(t, s.admin, "&wait=5")
	secret, _ := s.planKey(t, animalstore.PlanFree)
	s.hammer(t, secret).want(t, http.StatusTooManyRequests, animalstore.KeyBanned)
	s.add(t, animalstore.NewPet{Name: "Rex"})
	want := map[animalstore.EventType]animalstore.Actor{
		"key.created": animalstore.ActorCommandLine, "key.banned": animalstore.ActorService,
		"pet.created": animalstore.ActorCommandLine, "category.updated": animalstore.ActorCommandLine,
	}
	for _, e := range s.follow(t, s.admin, path, len(want)).events {
		if e.Actor == "" || e.Actor != want[e.Type] || e.KeyID != nil || e.RequestID != nil {
			t.Errorf("%s: got actor %q, key %v and request %v, want %q", e.Type, e.Actor, e.KeyID, e.RequestID, want[e.Type])
		}
	}
}

// TestEventsOfOthers: without admin, events of keys don't exist, and nobody learns
// which other key made a change.
func TestEventsOfOthers(t *testing.T) {
	s := start(t)
	reader := s.key(t, animalstore.Read)
	path := s.latest(t, s.admin, "&wait=5")
	s.do(t, call{method: "POST", path: "/v1/pets", body: `{"name":"Rex","categoryId":7}`}).want(t, 201, "")
	s.do(t, call{method: "POST", path: "/v1/keys", body: `{"name":"shop"}`, key: s.admin}).want(t, 201, "")
	s.do(t, call{method: "PATCH", path: "/v1/pets/1", body: `{"name":"Max"}`, key: s.admin}).want(t, 200, "")

	all := []string{"pet.created pet/1", "category.updated category/7", "key.created key/4", "pet.updated pet/1"}
	public := []string{all[0], all[1], all[3]}
	for _, test := range []struct {
		name, key, filter string
		want              []string
		known             []int64 // the keys that are shown, 0 for null
	}{
		{"an admin", s.admin, "", all, []int64{1, 1, 2, 2}},
		{"the key that made two of them", s.owner, "", public, []int64{1, 1, 0}},
		{"another key", reader, "", public, []int64{0, 0, 0}},
		{"an admin who asks for keys", s.admin, "&type=key.*", all[2:3], []int64{2}},
		{"another who asks for keys and pets", reader, "&type=key.*,pet.*", []string{all[0], all[3]}, []int64{0, 0}},
		{"an admin who asks for one key", s.admin, "&subject=key/4", all[2:3], []int64{2}},
	} {
		got := s.follow(t, test.key, path+test.filter, len(test.want)).events
		if types := typesOf(got); !slices.Equal(types, test.want) {
			t.Errorf("%s: got %q, want %q", test.name, types, test.want)
			continue
		}
		for i, e := range got {
			key := int64(0)
			if e.KeyID != nil {
				key = *e.KeyID
			}
			if e.Actor != animalstore.ActorKey || key != test.known[i] || (e.RequestID == nil) != (key == 0) {
				t.Errorf("%s: got %s by %s %d, request %v, want key %d", test.name, e.Type, e.Actor, key, e.RequestID, test.known[i])
			}
		}
	}
	newest := s.follow(t, s.admin, path, len(all)).events[3].ID
	for _, filter := range []string{"&type=key.*", "&type=webhook.created", "&subject=key/4"} {
		page := s.follow(t, reader, strings.Replace(path, "wait=5", "wait=0", 1)+filter, 0)
		page = readEventPage(t, s.do(t, call{path: page.next, key: reader}))
		if len(page.events) != 0 || !strings.Contains(page.next, fmt.Sprint("after=", newest)) {
			t.Errorf("%s: got %q and %s, want nothing and a position that moves on", filter, typesOf(page.events), page.next)
		}
	}
}

func TestEventsAreConditional(t *testing.T) {
	s := start(t).inProcess()
	s.follow(t, s.admin, "/v1/events?wait=5", 2) // both keys are there
	first := s.do(t, call{path: "/v1/events?limit=1", key: s.admin})
	same := s.do(t, call{path: "/v1/events?limit=1", key: s.admin, header: http.Header{"If-None-Match": {first.header.Get("ETag")}}})
	same.want(t, 304, "")
	if same.header.Get("Link") != first.header.Get("Link") {
		t.Errorf("got Link %q with 304, want %q", same.header.Get("Link"), first.header.Get("Link"))
	}
	s.do(t, call{path: "/v1/events", header: http.Header{"If-Match": {`"other"`}}}).want(t, 412, "precondition_failed")
	head := s.do(t, call{method: "HEAD", path: "/v1/events?limit=1", key: s.admin})
	if head.status != 200 || head.header.Get("ETag") != first.header.Get("ETag") {
		t.Errorf("HEAD: got %d %v, want the headers of GET", head.status, head.header)
	}
	if got := s.do(t, call{method: "OPTIONS", path: "/v1/events"}); got.status != 204 || got.header.Get("Allow") != "GET, HEAD, OPTIONS" {
		t.Errorf("OPTIONS: got %d, Allow %q", got.status, got.header.Get("Allow"))
	}
	s.do(t, call{method: "POST", path: "/v1/events", bad: true}).want(t, 405, "method_not_allowed")
	s.do(t, call{path: "/v1/events", key: s.key(t, animalstore.Write)}).want(t, 403, "insufficient_permission")
}

// TestEventsHaveNoSecrets: nothing that is secret is in an event of any type.
func TestEventsHaveNoSecrets(t *testing.T) {
	s := start(t)
	from := s.latest(t, s.admin, "&limit=100&wait=5")
	secrets := []string{s.owner, s.admin, "Bearer", "ast_live_", "whsec_", "hash", "secret"}
	secrets = append(secrets, s.provokeKeyEvents(t)...)
	secrets = append(secrets, s.provokeWebhookEvents(t)...)
	s.do(t, call{method: "POST", path: "/v1/pets", body: `{"name":"Rex","categoryId":7}`}).want(t, 201, "")
	s.do(t, call{method: "POST", path: "/v1/store/orders", body: `{"petId":1}`}).want(t, 201, "")
	s.do(t, call{method: "PATCH", path: "/v1/store/orders/1", body: `{"status":"cancelled"}`}).want(t, 200, "")
	s.do(t, upload(1, "image/jpeg", smallJPEG)).want(t, 201, "")
	s.do(t, call{method: "DELETE", path: "/v1/pets/1"}).want(t, 204, "")

	const made = 6 + 4 + 9 // of the key, the webhook, and the pet with its order, category and photo
	events := s.follow(t, s.admin, from, made).events
	missing := slices.Clone(animalstore.EventTypes)
	for _, e := range events {
		missing = slices.DeleteFunc(missing, func(t animalstore.EventType) bool { return t == e.Type })
		b, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range secrets {
			if shown := leaked(string(b), secret); shown != "" {
				t.Errorf("%s shows %q: %s", e.Type, shown, b)
			}
		}
	}
	if len(missing) > 0 {
		t.Errorf("got no event of the types %q, want one of each: provoke it here", missing)
	}
}

// leaked returns the form in which a text contains a secret, or "".
func leaked(text, secret string) string {
	if secret == "" {
		return "an empty secret: the test has none"
	}
	hash := keys.Hash(secret)
	text = strings.ToLower(text)
	for _, form := range []string{secret, hex.EncodeToString(hash[:]), base64.StdEncoding.EncodeToString(hash[:]), base64.RawURLEncoding.EncodeToString(hash[:])} {
		if strings.Contains(text, strings.ToLower(form)) {
			return form
		}
	}
	return ""
}

// made is a new key or webhook, which shows its secret.
type made struct {
	ID     int64
	Secret string
}

// make sends a request as admin whose response shows a secret.
func (s *service) make(t testing.TB, path, body string) (m made) {
	t.Helper()
	got := s.do(t, call{method: "POST", path: path, body: body, key: s.admin})
	if err := json.Unmarshal(got.body, &m); err != nil || got.status >= 300 || m.Secret == "" {
		t.Fatalf("POST %s: got %v (%v), want a secret", path, got, err)
	}
	return m
}

// provokeKeyEvents makes an event of each type of keys, and returns the secrets.
func (s *service) provokeKeyEvents(t testing.TB) []string {
	t.Helper()
	key := s.make(t, "/v1/keys", `{"name":"canary"}`)
	path := fmt.Sprint("/v1/keys/", key.ID)
	rotated := s.make(t, path+"/rotate", "")
	s.do(t, call{method: "PATCH", path: path, body: `{"name":"bird"}`, key: s.admin}).want(t, 200, "")
	now := s.clock.Now()
	ban := db.LimitState{BannedAt: now.UnixMilli(), BannedUntil: now.Add(time.Hour).UnixMilli(), BanLevel: 1}
	if err := s.db.SaveLimitStates(t.Context(), []db.KeyLimitState{{KeyID: key.ID, LimitState: ban}}); err != nil {
		t.Fatal(err)
	}
	s.do(t, call{method: "POST", path: path + "/unban", key: s.admin}).want(t, 200, "")
	s.do(t, call{method: "DELETE", path: path, key: s.admin}).want(t, 204, "")
	return []string{key.Secret, rotated.Secret}
}

// provokeWebhookEvents makes an event of each type of webhooks, and returns the secrets.
func (s *service) provokeWebhookEvents(t testing.TB) []string {
	t.Helper()
	hook := s.make(t, "/v1/webhooks", `{"url":"https://example.com/hook"}`)
	path := fmt.Sprint("/v1/webhooks/", hook.ID)
	rotated := s.make(t, path+"/rotate", "")
	s.do(t, call{method: "PATCH", path: path, body: `{"description":"shop"}`, key: s.admin}).want(t, 200, "")
	if _, err := s.db.UpdateWebhook(t.Context(), hook.ID, func(w *animalstore.Webhook) error {
		w.State = animalstore.WebhookDisabled
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	s.do(t, call{method: "DELETE", path: path, key: s.admin}).want(t, 204, "")
	return []string{hook.Secret, strings.TrimPrefix(hook.Secret, "whsec_"), rotated.Secret, strings.TrimPrefix(rotated.Secret, "whsec_")}
}
