package api_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
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
	for begun := time.Now(); len(page.events) < n; {
		if time.Since(begun) > testenv.Deadline {
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

// TestEventsOfEveryChange makes each kind of change and expects its events, with the key,
// the request and the resource as a GET shows it, and without secrets. A webhook gets what
// the document's examples show.
func TestEventsOfEveryChange(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.do(t, call{method: "POST", path: "/v1/webhooks", key: s.admin,
		body: `{"url":"https://example.com/all","types":["pet.*","photo.*","order.*","category.*","key.*","webhook.*"]}`}).want(t, 201, "")
	path := s.latest(t, s.admin, "&wait=5")
	secrets := []string{s.owner, s.admin, "Bearer", "ast_live_", "whsec_", "hash", "secret"}
	var seen []animalstore.Event
	expect := func(want ...string) []animalstore.Event {
		t.Helper()
		page := s.follow(t, s.admin, path, len(want))
		if types := typesOf(page.events); !slices.Equal(types, want) {
			t.Fatalf("got events %q, want %q", types, want)
		}
		path, seen = page.next, append(seen, page.events...)
		return page.events
	}
	change := func(c call, get string, want ...string) {
		t.Helper()
		id := fmt.Sprint("request-", len(seen))
		c = with(c, "X-Request-Id", id)
		c.key = s.admin
		got := s.do(t, c)
		if got.status >= 300 {
			t.Fatalf("%s %s: got %v", c.method, c.path, got)
		}
		var made struct{ Secret string }
		json.Unmarshal(got.body, &made) // most responses have none
		if made.Secret != "" {
			secrets = append(secrets, made.Secret, strings.TrimPrefix(made.Secret, "whsec_"))
		}
		events := expect(want...)
		for _, e := range events {
			if e.Actor != animalstore.ActorKey || e.KeyID == nil || *e.KeyID != 2 || e.RequestID == nil || *e.RequestID != id {
				t.Errorf("%s %s: got event %+v, want the key and the request of the change", c.method, c.path, e)
			}
		}
		if get == "" {
			return
		}
		if data, want := events[0].Data, bytes.TrimSpace(s.do(t, call{path: get, key: s.admin}).body); !bytes.Equal(data, want) {
			t.Errorf("%s %s: got data %s, want %s", c.method, c.path, data, want)
		}
	}
	const pet, order, photo, category, key, webhook = "/v1/pets/1", "/v1/store/orders/1", "/v1/photos/1", "/v1/categories/7", "/v1/keys/3", "/v1/webhooks/2"
	change(post("/v1/pets", `{"name":"Rex","categoryId":7}`), pet, "pet.created pet/1", "category.updated category/7")
	change(patch(pet, `{"name":"Rex <&>"}`), pet, "pet.updated pet/1")
	change(patch(pet, `{"name":"Rex"}`), pet, "pet.updated pet/1")
	change(upload(1, "image/jpeg", smallJPEG), photo, "photo.created photo/1")
	change(post("/v1/store/orders", `{"petId":1,"reference":"A-1042"}`), order, "order.created order/1", "pet.updated pet/1")
	change(patch(order, `{"status":"approved"}`), order, "order.updated order/1")
	change(patch(order, `{"status":"cancelled"}`), order, "order.updated order/1", "pet.updated pet/1")
	change(put(category, `{"name":"Dogs"}`), category, "category.updated category/7")
	change(remove(pet), "", "photo.deleted photo/1", "pet.deleted pet/1")

	change(post("/v1/keys", `{"name":"shop","plan":"pro"}`), key, "key.created key/3")
	change(patch(key, `{"plan":"business"}`), key, "key.updated key/3")
	change(patch(key, `{"plan":"pro"}`), key, "key.updated key/3")
	change(post(key+"/rotate", ""), key, "key.rotated key/3")
	now := s.clock.Now()
	s.remember(t, 3, db.LimitState{BannedAt: now.UnixMilli(), BannedUntil: now.Add(time.Hour).UnixMilli(), BanLevel: 1})
	expect("key.banned key/3")
	change(post(key+"/unban", ""), key, "key.unbanned key/3")
	change(remove(key), key, "key.revoked key/3")

	newWebhook := post("/v1/webhooks", `{"url":"https://example.com/hooks/pets","types":["pet.*"],"description":"the shop's search"}`)
	change(newWebhook, webhook, "webhook.created webhook/2")
	change(post(webhook+"/rotate", ""), "")
	change(patch(webhook, `{"state":"paused"}`), webhook, "webhook.updated webhook/2")
	change(patch(webhook, `{"state":"active"}`), webhook, "webhook.updated webhook/2")
	change(remove(webhook), "", "webhook.deleted webhook/2")
	change(newWebhook, "/v1/webhooks/3", "webhook.created webhook/3")
	s.answerPing(t, 3, http.StatusGone)
	expect("webhook.disabled webhook/3")
	change(post("/v1/webhooks/1/ping", ""), "")

	missing := slices.Clone(animalstore.EventTypes)
	for _, e := range seen {
		missing = slices.DeleteFunc(missing, func(t animalstore.EventType) bool { return t == e.Type })
		for _, secret := range secrets {
			if shown := leaked(asJSON(t, e), secret); shown != "" {
				t.Errorf("%s shows %q: %s", e.Type, shown, asJSON(t, e))
			}
		}
	}
	if len(missing) > 0 {
		t.Errorf("got no event of the types %q, want one of each: provoke it here", missing)
	}
	wantExamples(t, s.deliveredBodies(t, 1))
}

// TestEventPages: pages of any size and filter lead through the same events, in both
// directions.
func TestEventPages(t *testing.T) {
	s := start(t)
	path := s.latest(t, "", "&wait=5")
	for range 5 {
		s.createPet(t, "Rex")
	}
	s.do(t, patch(petPath(2), `{"status":"sold"}`)).want(t, 200, "")
	all := s.follow(t, "", path, 7).events
	for _, test := range []struct {
		query string
		want  int
	}{
		{"", 7}, {"&limit=1", 7}, {"&limit=3", 7}, {"&limit=100", 7},
		{"&type=pet.created&limit=2", 5}, {"&type=pet.*", 6}, {"&type=category.updated,pet.updated", 2}, {"&type=pet.updated&type=category.updated", 2},
		{"&petId=2", 2}, {"&petId=2&limit=1&type=pet.created", 1}, {"&petId=7", 0}, {"&subject=pet/2", 2}, {"&subject=pet/2&limit=1", 2}, {"&subject=pet/2&type=pet.updated", 1}, {"&type=order.*", 0}, {"&subject=order/1", 0}, {"&type=key.*", 0},
	} {
		forwards, next := s.walkEvents(t, fmt.Sprintf("/v1/events?after=%d%s", all[0].ID-1, test.query))
		if len(forwards) != test.want || !slices.IsSorted(forwards) {
			t.Errorf("%s: got events %d, want %d in order", test.query, forwards, test.want)
		}
		if end := fmt.Sprint("after=", all[6].ID); !strings.Contains(next, end) {
			t.Errorf("%s: got the last link %s, want %s in it: behind what doesn't match, too", test.query, next, end)
		}
		backwards, next := s.walkEvents(t, "/v1/events?before=latest"+test.query)
		slices.Reverse(backwards)
		if !slices.Equal(backwards, forwards) || next != "" {
			t.Errorf("%s: got events %d backwards and next %q, want %d and none", test.query, backwards, next, forwards)
		}
	}
	for _, before := range []int64{all[6].ID + 1, math.MaxInt64} {
		s.do(t, call{path: fmt.Sprint("/v1/events?before=", before)}).want(t, 410, "events_expired")
	}
}

// walkEvents follows the links of a list of events while they lead on. It returns the ids
// and the last link, or "" if the last page had none.
func (s *service) walkEvents(t testing.TB, path string) (ids []int64, next string) {
	t.Helper()
	return s.walk(t, call{path: path})
}

// walk is walkEvents for a call.
func (s *service) walk(t testing.TB, c call) (ids []int64, next string) {
	t.Helper()
	for {
		page := s.do(t, c)
		page.want(t, 200, "")
		ids = append(ids, idsIn(t, page)...)
		link := nextEvents.FindStringSubmatch(page.header.Get("Link"))
		switch {
		case link == nil:
			return ids, ""
		case link[1] == c.path || len(ids) > 100:
			return ids, c.path
		}
		c.path = link[1]
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

// TestEventsWait: a waiting request gets its response as soon as there is an event, and
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
	s.follow(t, "", strings.Replace(page.next, "pet.updated", "pet.created", 1), 1) // until it is published
	short := readEventPage(t, s.do(t, call{path: strings.Replace(page.next, "wait=30", "wait=0", 1)}))
	if len(short.events) != 0 || strings.Replace(short.next, "wait=0", "wait=30", 1) == page.next {
		t.Errorf("got %q and the link %s, want nothing and a link behind the event that doesn't match", typesOf(short.events), short.next)
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

// TestEventsOfOthers: events of what a key may not read don't exist for it, in either
// direction, and it learns about the makers of the others only what it may know. Package
// events has more of both.
func TestEventsOfOthers(t *testing.T) {
	s := start(t)
	petReader, orderAdmin := s.key(t, animalstore.PetsRead), s.key(t, animalstore.OrdersRead|animalstore.Admin)
	path := s.latest(t, s.admin, "&wait=5")
	s.createPet(t, "Rex") // by the owner
	s.asAdmin(t, "POST", "/v1/keys", `{"name":"shop"}`).want(t, 201, "")
	s.asAdmin(t, "PATCH", petPath(1), `{"name":"Max"}`).want(t, 200, "")
	for _, test := range []struct {
		name, key, filter string
		want              []string // each with whether its key and its request are shown
	}{
		{"an admin", s.admin, "", []string{"pet.created true true", "category.updated true true", "key.created true true", "pet.updated true true"}},
		{"a key with write", s.owner, "", []string{"pet.created true true", "category.updated true true", "pet.updated true false"}},
		{"a key with pets:read that asks for more", petReader, "&type=key.*,pet.*", []string{"pet.created false false", "pet.updated false false"}},
		{"an admin with orders:read", orderAdmin, "", []string{"key.created true true"}},
	} {
		forwards := s.follow(t, test.key, path+test.filter, len(test.want)).events
		backwards := read[[]animalstore.Event](t, s.do(t,
			call{path: fmt.Sprint("/v1/events?before=latest&limit=", len(forwards), test.filter), key: test.key}), 200)
		slices.Reverse(backwards)
		for _, events := range [][]animalstore.Event{forwards, backwards} {
			var got []string
			for _, e := range events {
				got = append(got, fmt.Sprint(e.Type, " ", e.KeyID != nil, " ", e.RequestID != nil))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("%s: got %q, want %q", test.name, got, test.want)
			}
		}
	}
}

// TestEventsAreConditional: a 304 still leads on.
func TestEventsAreConditional(t *testing.T) {
	s := start(t).inProcess()
	s.follow(t, s.admin, "/v1/events?wait=5", 2) // both keys are there
	first := s.do(t, call{path: "/v1/events?limit=1", key: s.admin})
	for _, method := range []string{"GET", "HEAD"} {
		same := s.do(t, with(call{method: method, path: "/v1/events?limit=1", key: s.admin}, "If-None-Match", first.header.Get("ETag")))
		if same.status != 304 || same.header.Get("Link") != first.header.Get("Link") {
			t.Errorf("%s: got %v with Link %q, want 304 and %q", method, same, same.header.Get("Link"), first.header.Get("Link"))
		}
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
