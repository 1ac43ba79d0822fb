package console_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/console"
	"animalstore/internal/server"
)

// target fills in the path of a route, with things that exist.
func (s *site) target(pattern string) (method, path string) {
	method, path, _ = strings.Cut(pattern, " ")
	id := int64(1)
	switch {
	case strings.HasPrefix(path, "/console/pets/{id}"):
		id = s.pet("Rex").ID
	case strings.HasPrefix(path, "/console/orders/{id}"):
		order, _, err := s.db.PlaceOrder(s.t.Context(), s.pet("Tom").ID, animalstore.At(s.clock()), nil)
		if err != nil {
			s.t.Fatal(err)
		}
		id = order.ID
	case strings.HasPrefix(path, "/console/photos/{id}"):
		id = s.photo(s.pet("Mia").ID).ID
	case strings.HasPrefix(path, "/console/keys/{id}"):
		_, id = s.key("another", animalstore.Read, 60)
	}
	return method, strings.NewReplacer("{id}", fmt.Sprint(id), "{delivery}", "1", "{photo}", "1").Replace(path)
}

var actionForm = regexp.MustCompile(`<form[^>]*method="post"[^>]*action="([^"]*)"`)

// TestPermissions: without a permission, a page is 403, an action too, and no page has a
// button for it.
func TestPermissions(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.pet("Kim")
	form := url.Values{"name": {"changed"}, "category": {"1"}, "status": {"sold"}, "petId": {"1"}, "id": {"77"}, "confirm": {"yes"}, "plan": {"free"}, "permission": {"admin"}, "graceHours": {"0"}, "once": {strings.Repeat("o", 30)}}
	for _, has := range []animalstore.Permissions{animalstore.Read, animalstore.Write, animalstore.Admin, animalstore.Read | animalstore.Write, everything} {
		b := s.signedIn(has)
		for _, route := range console.Routes() {
			if strings.HasSuffix(route.Pattern, "/stream") && has.Has(route.Needs) {
				continue // it has no end: see TestStream
			}
			method, path := s.target(route.Pattern)
			what := has.String() + ": " + method + " " + path
			before := s.content()
			p := b.do(method, path, form)
			if has.Has(route.Needs) {
				absent := strings.HasPrefix(path, "/console/webhooks/") && p.status == http.StatusNotFound // there is none
				if method == http.MethodGet && has.Has(animalstore.Read) && p.status != http.StatusOK && !absent || p.status >= 500 {
					t.Errorf("%s: got %d, want 200\n%s", what, p.status, p.body)
				}
				wantOnlyAllowed(t, what, p, has)
				continue
			}
			p.want(t, what, http.StatusForbidden, "Not allowed", route.Needs.String(), has.String())
			if after := s.content(); after != before {
				t.Errorf("%s: the store changed from\n%s\nto\n%s", what, before, after)
			}
		}
	}
}

// wantOnlyAllowed fails the test if a page offers what the key may not do.
func wantOnlyAllowed(t *testing.T, what string, p shown, has animalstore.Permissions) {
	t.Helper()
	for _, form := range actionForm.FindAllStringSubmatch(p.body, -1) {
		needs := animalstore.Write
		switch {
		case form[1] == "/console/sign-out":
			continue
		case strings.HasPrefix(form[1], "/console/keys"), strings.HasPrefix(form[1], "/console/webhooks"):
			needs = animalstore.Admin
		}
		if !has.Has(needs) {
			t.Errorf("%s: got a form for %s, want none without %s", what, form[1], needs)
		}
	}
	for path, needs := range map[string]animalstore.Permissions{"/console/keys": animalstore.Admin, "/console/system": animalstore.Admin, "/console/webhooks": animalstore.Admin, "/console/pets/new": animalstore.Write} {
		if strings.Contains(p.body, `href="`+path+`"`) && !has.Has(needs) {
			t.Errorf("%s: got a link to %s, want none without %s", what, path, needs)
		}
	}
}

// content is everything in the store that the console can change, except sessions.
func (s *site) content() string {
	s.t.Helper()
	var b strings.Builder
	add := func(v any, err error) {
		if err != nil {
			s.t.Fatal(err)
		}
		fmt.Fprintf(&b, "%+v\n", v)
	}
	for id := range int64(100) {
		if pet, err := s.db.Pet(s.t.Context(), id); err == nil {
			add(pet, nil)
		}
		if order, err := s.db.Order(s.t.Context(), id); err == nil {
			add(order, nil)
		}
		if key, err := s.db.Key(s.t.Context(), id); err == nil {
			key.LastUsedAt = animalstore.Time{}
			add(key, nil)
		}
		if photo, err := s.db.Photo(s.t.Context(), id); err == nil {
			add(photo, nil)
		}
		if webhook, err := s.db.Webhook(s.t.Context(), id); err == nil {
			add(webhook, nil)
		}
		if category, err := s.db.Category(s.t.Context(), id); err == nil {
			add(category, nil)
		}
	}
	return b.String()
}

// TestFirstPageForEveryKey: whatever a key may do, signing in leads to a page it may see.
func TestFirstPageForEveryKey(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.signedIn(animalstore.Read).get("/console").want(t, "read", http.StatusOK, "<h1>Overview</h1>")
	s.signedIn(animalstore.Admin).get("/console").wantMoved(t, "admin", "/console/keys")
	b := s.signedIn(animalstore.Write)
	b.get("/console").wantMoved(t, "write", "/console/pets/new")
	b.get("/console/pets/new").want(t, "write", http.StatusOK, "<h1>Add a pet</h1>")
}

// TestEveryCallIsCharged: a page costs what its calls cost, and none makes more than
// six, unless there are too many keys to list: see TestActorsAmongManyKeys.
func TestEveryCallIsCharged(t *testing.T) {
	t.Parallel()
	s := start(t)
	secret, _ := s.key("shop", everything, 1<<30)
	b := s.browser()
	b.signIn(secret)
	want := map[string]int64{
		"/console": 5, "/console/usage": 2, "/console/usage?period=90d": 2, "/console/events": 2, "/console/events?type=pet.*": 3, "/console/events?subject=pet/1&before=2": 1, "/console/pets": 3, "/console/pets/new": 1, "/console/orders": 1,
		"/console/categories": 1, "/console/keys": 1, "/console/keys/1": 3, "/console/system": 1, "/console/webhooks": 1, "/console/nothing": 0, "/console/sign-in": 0,
	}
	pet := s.pet("Rex")
	want[fmt.Sprint("/console/pets/", pet.ID)] = 6
	for path, calls := range want {
		before := s.left(secret)
		b.get(path)
		if got := before - s.left(secret) - 1; got != calls || got > 6 {
			t.Errorf("%s: got %d requests charged, want %d", path, got, calls)
		}
	}
	webhook := animalstore.NewWebhook{URL: "https://example.com/", Types: animalstore.DefaultEventPatterns}
	if _, err := s.db.CreateWebhook(t.Context(), webhook, "whsec_b25l", animalstore.At(s.clock())); err != nil {
		t.Fatal(err)
	}
	if _, err := s.db.PingWebhook(t.Context(), 1, animalstore.WebhookPing, animalstore.At(s.clock())); err != nil {
		t.Fatal(err)
	}
	for _, route := range console.Routes() {
		method, path := s.target(route.Pattern)
		if method != http.MethodGet || strings.HasSuffix(path, "/stream") {
			continue
		}
		before := s.left(secret)
		b.get(path).want(t, path, http.StatusOK)
		if got := before - s.left(secret) - 1; got > 6 || got < 1 && !strings.HasSuffix(path, "/keys/new") && !strings.HasSuffix(path, "/secret") && path != "/console/find" && !strings.HasPrefix(path, "/console/photos/") { // those are charged to the address, or free
			t.Errorf("%s: got %d requests charged, want 1 to 6", path, got)
		}
	}
	before := s.left(secret)
	b.get("/console").want(t, "the overview with orders", http.StatusOK, "<bdi>Tom</bdi>")
	if got := before - s.left(secret) - 1; got != 6 {
		t.Errorf("the overview with orders: got %d requests charged, want 6", got)
	}
	before = s.left(secret)
	form := b.get(fmt.Sprint("/console/pets/", pet.ID)).form(t, fmt.Sprint("/console/pets/", pet.ID), "name", "Max", "etag", `"stale"`)
	between := s.left(secret)
	b.post(fmt.Sprint("/console/pets/", pet.ID), form).want(t, "a stale change", http.StatusPreconditionFailed)
	if got := between - s.left(secret) - 1; got > 5 {
		t.Errorf("a stale change: got %d requests charged (%d before), want at most 5", got, before-between-1)
	}
}

// TestLimited: a page over the limit says why, and until when.
func TestLimited(t *testing.T) {
	t.Parallel()
	s := start(t)
	secret, id := s.key("shop", everything, 6)
	b := s.browser()
	b.signIn(secret)
	b.get("/console").want(t, "within the limit", http.StatusOK)
	p := b.get("/console/pets?status=sold&category=1")
	p.want(t, "over the limit", http.StatusTooManyRequests, `href="/console/pets?status=sold&amp;category=1">Try again</a>`, "Too many requests", "of this minute are used up", `<time datetime="2026-11-15T12:01:00.000Z">`, `data-seconds="60"`, "Sign out")
	if got := p.header.Get("Retry-After"); got != "60" {
		t.Errorf("got Retry-After %q, want 60", got)
	}
	s.browser().signIn(secret).want(t, "signing in over the limit", http.StatusTooManyRequests, "of this minute are used up")
	s.advance(2 * time.Second)
	for range 200 {
		b.get("/console")
	}
	banned := b.get("/console")
	banned.want(t, "banned", http.StatusTooManyRequests, "This key is banned", "<time")
	s.browser().signIn(secret).want(t, "signing in while banned", http.StatusTooManyRequests, "This key is banned")

	// The limits of the other key are its own, and it sees and lifts the ban.
	if err := s.server.Save(t.Context()); err != nil {
		t.Fatal(err)
	}
	operator := s.signedIn(everything)
	operator.get("/console/keys").want(t, "the list", http.StatusOK, `<span class="tag banned">banned</span>`)
	path := fmt.Sprint("/console/keys/", id)
	key := operator.get(path)
	key.want(t, "the banned key", http.StatusOK, "Lift the ban")
	operator.post(path+"/unban", key.form(t, path+"/unban")).wantMoved(t, "unban", path).wantDone(t, "unbanned")
	operator.post(path+"/unban", key.form(t, path+"/unban")).wantMoved(t, "unban again", path).wantDone(t, "no-ban")
	s.advance(time.Minute)
	b.get("/console").want(t, "after the ban was lifted", http.StatusOK)
}

// TestFirstPage: with everything it loads, it takes less than 100 KiB, all from here.
func TestFirstPage(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn(everything)
	p := b.get("/console")
	total := len(p.body)
	for _, path := range regexp.MustCompile(`(?:href|src)="([^"]*\.(?:css|js|svg))"`).FindAllStringSubmatch(p.body, -1) {
		res, err := http.Get(s.url + path[1])
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || res.StatusCode != http.StatusOK || !strings.Contains(res.Header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s: got %d %s (%v), want a file that browsers keep", path[1], res.StatusCode, res.Header, err)
		}
		total += len(body)
	}
	if total > 100<<10 {
		t.Errorf("the first page takes %d bytes, want at most 100 KiB", total)
	}
	t.Logf("the first page takes %d bytes", total)
	for _, inline := range []string{"<style", " style=", "<script>", " onclick", "javascript:", "http://", "https://"} {
		if strings.Contains(p.body, inline) {
			t.Errorf("got %q on the page, want none", inline)
		}
	}
	if policy := p.header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
		t.Errorf("got the policy %q, want a strict one", policy)
	}
}

// TestWithoutConsole: a server can be without one, and then nothing leads to it.
func TestWithoutConsole(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config) { c.NoConsole = true })
	b := s.browser()
	for _, path := range []string{"/console", "/console/sign-in", "/console/pets"} {
		b.get(path).want(t, path, http.StatusNotFound, "route_not_found")
	}
	for _, path := range []string{"/", "/docs", "/docs/guides"} {
		if p := b.get(path); p.status != http.StatusOK || strings.Contains(p.body, `href="/console`) {
			t.Errorf("%s: got %d, want a page without a link to the console", path, p.status)
		}
		if p := start(t).browser().get(path); !strings.Contains(p.body, `href="/console"`) {
			t.Errorf("%s: got no link to the console, want one where there is one", path)
		}
	}
}

// TestStates: empty lists and pages say so.
func TestStates(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn(everything)
	for path, text := range map[string]string{
		"/console/pets": "The store has no pets yet.", "/console/pets?status=sold": "No pet matches these filters.",
		"/console/orders": "Nobody has ordered a pet yet.", "/console/orders?pet=7": "No order matches these filters.",
		"/console/categories": "There are no categories yet.", "/console": "Nothing has happened lately.", "/console/events?type=pet.deleted": "No event matches.", "/console/system": "Write queue",
	} {
		b.get(path).want(t, path, http.StatusOK, text)
	}
	for path, status := range map[string]int{
		"/console/nothing": 404, "/console/pets/7": 404, "/console/pets/x": 404, "/console/orders/7": 404, "/console/orders/-1": 404,
		"/console/categories/7": 404, "/console/keys/99": 404, "/console/pets?status=gone": 400,
		"/console/pets?cursor=x": 400, "/console/keys?cursor=x": 400, "/console/events?after=x": 400, "/console/events?type=pet": 400,
	} {
		p := b.get(path)
		p.want(t, path, status, "Sign out", `<p class="code">`)
	}
	s.signedIn(animalstore.Read).get("/console/pets/7").want(t, "read only", http.StatusNotFound, "Not found")
}
