package console_test

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/testenv"
)

// TestEvents: the feed with its filters, and who did it, for admins only.
func TestEvents(t *testing.T) {
	t.Parallel()
	s := start(t)
	admin, reader := s.signedIn(everything), s.signedIn(animalstore.Read)
	s.category(7, "dogs")
	form := admin.get("/console/pets/new").form(t, "/console/pets", "name", "Rex <b>", "category", "dogs")
	admin.post("/console/pets", form)
	pet := admin.get("/console/pets/1")
	admin.post("/console/orders", pet.form(t, "/console/orders"))

	s.webhook()
	disable := func(w *animalstore.Webhook) error { w.State = animalstore.WebhookDisabled; return nil }
	if _, err := s.DB.UpdateWebhook(db.WithOrigin(t.Context(), db.Service), 1, disable); err != nil {
		t.Fatal(err)
	}
	p := admin.get("/console/events")
	p.want(t, "who did it", http.StatusOK, `<a href="/console/keys/1"><bdi>read,write,admin</bdi></a>`,
		"<bdi>the service</bdi>", "<bdi>command line</bdi>")
	p.want(t, "the feed", http.StatusOK, "pet.created", "order.created", "pet.updated", "key.created", `<a class="whole" href="/console/pets/1">pet 1</a>`, "<bdi>Rex &lt;b&gt;</bdi>, <bdi>available</bdi>", `<tr class="day"><th colspan="5" scope="rowgroup">`)
	for filter, hidden := range map[string][]string{
		"type=pet.*": {"order.created", "key.created"}, "subject=pet%2F1": {"order.created", "key.created"}, "type=pet.updated&subject=pet%2F1": {"pet.created"},
	} {
		p = admin.get("/console/events?" + filter)
		p.want(t, filter, http.StatusOK, "Pet changed</td>")
		for _, other := range hidden {
			if strings.Contains(p.body, `title="`+other+`"`) {
				t.Errorf("%s: the filtered feed has %s:\n%s", filter, other, p.body)
			}
		}
	}
	p = reader.get("/console/events")
	p.want(t, "as a reader", http.StatusOK, "Pet added</td>", "<bdi>another key</bdi>")
	for _, hidden := range []string{"key.created", "/console/keys", "webhook"} {
		if strings.Contains(p.body, hidden) {
			t.Errorf("a reader sees %q:\n%s", hidden, p.body)
		}
	}
	admin.get("/console").want(t, "the overview", http.StatusOK, `<td title="order.created">Order placed</td>`, "data-after=")
	admin.get("/console/pets/1").want(t, "the history", http.StatusOK, `title="pet.created">Pet added`, `title="pet.updated">Pet changed`, "<bdi>available</bdi> → <bdi>pending</bdi>")
	for i := range 120 {
		s.Pet(fmt.Sprint("pet ", i))
	}
	for _, query := range []string{"", "?type=pet.*", "?type=key.*", "?subject=pet%2F7"} {
		walkFeed(t, s, admin, query)
	}
}

var (
	rowID     = regexp.MustCompile(`<tr data-id="(\d+)">`)
	pagerLink = map[string]*regexp.Regexp{
		"prev": regexp.MustCompile(`rel="prev" href="([^"]*)">`),
		"next": regexp.MustCompile(`rel="next" href="([^"]+)">`), // one that is hidden has more
	}
)

// walkFeed: from the latest events back to the oldest and to the latest again, pages show
// every event that matches, once, newest first. Only the first is live.
func walkFeed(t *testing.T, s *site, b *browser, query string) {
	t.Helper()
	options := db.EventQuery{Limit: 1000}
	values, _ := url.ParseQuery(strings.TrimPrefix(query, "?"))
	options.Subject = values.Get("subject")
	options.Types = animalstore.EventPatterns(values.Get("type")).Types()
	events, _, err := s.DB.Events(t.Context(), options)
	if err != nil || len(events) == 0 {
		t.Fatalf("%s: got %d events, %v, want some", query, len(events), err)
	}
	var want []string
	for _, e := range events {
		want = append(want, fmt.Sprint(e.ID))
	}
	slices.Reverse(want)
	page := b.get("/console/events" + query)
	walk := func(direction string) (ids []string) {
		for pages := 0; pages < 20; pages++ {
			page.want(t, query, http.StatusOK)
			var here []string
			for _, m := range rowID.FindAllStringSubmatch(page.body, -1) {
				here = append(here, m[1])
			}
			if direction == "next" {
				ids = append(ids, here...)
			} else {
				ids = append(here, ids...)
			}
			isLive := strings.Contains(page.body, "data-after=")
			if isLive && (len(here) == 0 || here[0] != want[0]) {
				t.Errorf("%s: the page with %q is live, want only the latest to be", query, here)
			}
			link := pagerLink[direction].FindStringSubmatch(page.body)
			if link == nil && direction == "prev" && !isLive {
				t.Errorf("%s: nothing is newer than the page with %q, want it to be live", query, here)
			}
			if link == nil {
				return ids
			}
			if page = b.get(html.UnescapeString(link[1])); page.status == http.StatusSeeOther {
				page = b.get(page.location())
			}
		}
		return ids
	}
	if got := walk("next"); !slices.Equal(got, want) {
		t.Errorf("%s: back: got %d events %q, want %d %q", query, len(got), got, len(want), want)
	}
	// The latest page is full again, so it repeats some of the page before.
	got := walk("prev")
	slices.SortStableFunc(got, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(b, a)) })
	if got = slices.Compact(got); !slices.Equal(got, want) {
		t.Errorf("%s: forth: got %d events %q, want %d %q", query, len(got), got, len(want), want)
	}
}

// TestStream: what happens is shown as it happens, for one request, until the session
// ends.
func TestStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startInBubble(t)
		secret, _ := s.Key("shop", everything, 1<<30)
		b := s.browser()
		b.signIn(secret)
		before := s.left(secret)
		ctx, cancel := context.WithTimeout(t.Context(), testenv.Deadline)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/console/events/stream?after=latest&type=pet.created", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.AddCookie(&http.Cookie{Name: "animalstore_session", Value: b.cookie})
		res, err := b.s.http.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" {
			t.Fatalf("got %d %s, want a stream", res.StatusCode, res.Header)
		}
		s.Pet("Rex")
		lines := bufio.NewScanner(res.Body)
		for lines.Scan() && !strings.HasPrefix(lines.Text(), "data:") {
		}
		if !strings.Contains(lines.Text(), `"name":"Rex"`) {
			t.Errorf("got %q (%v), want the new pet", lines.Text(), lines.Err())
		}
		if got := before - s.left(secret) - 1; got != 1 {
			t.Errorf("got %d requests charged, want 1", got)
		}
		b.post("/console/sign-out", url.Values{})
		signedOut := time.Now()
		for lines.Scan() { // until the stream ends
			if strings.HasPrefix(lines.Text(), "data:") {
				t.Errorf("after signing out: got %q, want the end", lines.Text())
			}
		}
		if took := time.Since(signedOut); lines.Err() != nil || took > 2*time.Second {
			t.Errorf("after signing out: got %v after %v, want the end within 2s", lines.Err(), took)
		}
	})
}

// TestLinksToWhatIsGone: a page of events from before a removal doesn't link to what was
// removed, and links to what wasn't.
func TestLinksToWhatIsGone(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn(everything)
	kept, removed := s.Pet("Rex"), s.Pet("Tom")
	s.Photo(kept.ID)
	s.Photo(kept.ID)
	s.Photo(removed.ID)
	if err := s.DB.DeletePhoto(t.Context(), 2, func(*animalstore.Photo) error { return nil }); err != nil {
		t.Fatal(err)
	}
	s.webhook()
	order := s.order(removed.ID)
	before := b.get("/console/events").body
	form := b.get("/console/orders/1").form(t, fmt.Sprint("/console/orders/", order.ID), "status", "cancelled")
	b.post("/console/orders/1", form).wantMoved(t, "cancel", "/console/orders/1")
	newest := regexpFind(t, before, `<tr data-id="([0-9]+)">`)
	if err := s.DB.DeletePet(t.Context(), removed.ID, func(*animalstore.Pet, bool) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := s.DB.DeleteWebhook(t.Context(), 1, func(*animalstore.Webhook) error { return nil }); err != nil {
		t.Fatal(err)
	}
	photo := regexpFind(t, before, `title="photo.created">Photo added</td><td><a class="whole" href="(/console/photos/1/image[^"]*)">photo 1</a></td><td class="name"><div class="clamp"><a href="/console/pets/1">pet 1</a>, <bdi>64 × 48</bdi>`)
	b.get(photo).want(t, "the photo of an event", http.StatusOK)
	for _, link := range []string{"/console/pets/2", "/console/photos/3/", "/console/webhooks/1"} {
		if !strings.Contains(before, `href="`+link) {
			t.Errorf("before the removal there is no link to %s", link)
		}
	}
	page := b.get("/console/events?before=" + newest).body
	for link, want := range map[string]bool{
		"/console/pets/1\"": true, "/console/pets/2\"": false, "/console/photos/1/": true, "/console/photos/2/": false, "/console/photos/3/": false,
		"/console/orders/1\"": true, "/console/webhooks/1\"": false,
	} {
		if got := strings.Contains(page, `href="`+link); got != want {
			t.Errorf("a link to %s: %t, want %t", link, got, want)
		}
	}
}
