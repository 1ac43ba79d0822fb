package console_test

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestErrorsAtTheirFields: an error is next to its input or filter, which has the focus and
// what was typed.
func TestErrorsAtTheirFields(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn(everything)
	pet := fmt.Sprint("/console/pets/", s.Pet("Rex").ID)
	s.webhook()
	for _, test := range []struct{ page, action, field, value string }{
		{"/console/pets/new", "/console/pets", "name", strings.Repeat("x", 1025)},
		{"/console/pets/new", "/console/pets", "category", "dogs"},
		{pet + "/edit", pet, "name", "  "},
		{"/console/categories", "/console/categories", "id", "one"},
		{"/console/categories/1", "/console/categories/1", "name", ""},
		{"/console/keys/new", "/console/keys", "perDay", "many"},
		{"/console/keys/new", "/console/keys", "networks", "203.0.113.7/24"},
		{"/console/keys/new", "/console/keys", "expires", "2020-01-01T00:00:00"},
		{"/console/keys/1", "/console/keys/1/rotate", "graceHours", "a day"},
		{"/console/webhooks/1", "/console/webhooks/1/rotate", "graceHours", "-1"},
		{"/console/webhooks/1", "/console/webhooks/1/deliveries/retry-since", "since", "2999-12-31T23:59"},
		{"/console/webhooks", "/console/webhooks", "url", "ftp://nowhere"},
	} {
		form := b.get(test.page).form(t, test.action)
		for name, value := range map[string]string{"name": "Max", "category": "1", "id": "5", "plan": "enterprise", "perMinute": "1", "perDay": "1", "url": "https://192.0.2.1/", test.field: test.value} {
			if _, sent := form[name]; sent {
				form.Set(name, value)
			}
		}
		p := b.post(test.action, form)
		p.want(t, test.field, http.StatusBadRequest, `aria-invalid="true" aria-describedby="wrong" autofocus>`, `<p class="wrong" id="wrong" role="alert">`)
		tag := regexpFind(t, p.body, `(<input id="`+test.field+`"[^>]*>)`)
		if !strings.Contains(tag, "autofocus") || !strings.Contains(tag, `value="`+html.EscapeString(test.value)+`"`) {
			t.Errorf("%s %s: got %s, want the focus and what was typed", test.action, test.field, tag)
		}
		if strings.Contains(p.body, "notice wrong") {
			t.Errorf("%s %s: the error is at the top too", test.action, test.field)
		}
	}
	p := b.post("/console/keys", b.get("/console/keys/new").form(t, "/console/keys", "name", "shop", "permission", ""))
	p.want(t, "no permission", http.StatusBadRequest, `<fieldset class="permissions" tabindex="-1" aria-invalid="true"`)

	// Limits that a plan doesn't take are a mistake in the form.
	for _, field := range []string{"perMinute", "perDay"} {
		form := b.get("/console/keys/new").form(t, "/console/keys", "name", "shop", "plan", "free", "perMinute", "", "perDay", "", field, "500")
		b.post("/console/keys", form).want(t, field, http.StatusBadRequest, `name="`+field+`" value="500" inputmode="numeric" autocomplete="off" aria-invalid="true"`)
	}
	for path, field := range map[string]string{
		"/console/pets?category=Rex%26": "category", "/console/orders?pet=Rex%26": "pet", "/console/orders?order=Rex%26": "order",
	} {
		p := b.get(path)
		p.want(t, path, http.StatusBadRequest, `<p class="wrong" id="wrong" role="alert">`, `<form class="filters"`)
		if tag := regexpFind(t, p.body, `(<input id="`+field+`"[^>]*>)`); !strings.Contains(tag, `value="Rex&amp;"`) || !strings.Contains(tag, "autofocus") {
			t.Errorf("%s: got %s, want the focus and what was typed", path, tag)
		}
	}

	box := `<input type="checkbox" name="confirm" value="yes" required aria-invalid="true" aria-describedby="wrong" autofocus>`
	p = b.post("/console/keys/1/revoke", b.get("/console/keys/1").form(t, "/console/keys/1/revoke"))
	p.want(t, "revoke without the tick", http.StatusBadRequest, `<details class="danger" open>`, box)
	p = b.post("/console/keys/1/revoke", url.Values{"confirm": {"yes"}})
	p.want(t, "revoke the last admin", http.StatusConflict, `<details class="danger" open>`, box)
	for _, path := range []string{"/console/keys/1", "/console/webhooks/1"} {
		p = b.post(path+"/rotate", b.get(path).form(t, path+"/rotate", "etag", `"stale"`, "graceHours", "7"))
		p.want(t, "a stale rotation", http.StatusPreconditionFailed, `name="graceHours" value="7" required inputmode="numeric" autocomplete="off" aria-invalid="true"`)
		b.post(path+"/rotate", p.form(t, path+"/rotate")).want(t, "rotate after all", http.StatusOK, `id="secret"`)
	}
}

// TestSecretsAreShownOnce: in the response to the form that asked for them.
func TestSecretsAreShownOnce(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.webhook()
	b := s.signedIn(everything)
	for what, page := range map[string][2]string{
		"create a key": {"/console/keys/new", "/console/keys"}, "rotate a key": {"/console/keys/1", "/console/keys/1/rotate"},
		"create a webhook": {"/console/webhooks", "/console/webhooks"}, "rotate a webhook": {"/console/webhooks/1", "/console/webhooks/1/rotate"},
	} {
		form := b.get(page[0]).form(t, page[1], "name", "shop", "url", "https://192.0.2.1/")
		b.post(page[1], form).want(t, what, http.StatusOK, `<code id="secret">`)
		if again := b.post(page[1], form); again.status != http.StatusConflict || strings.Contains(again.body, `id="secret"`) {
			t.Errorf("%s, sent again: got %d, want 409 without a secret\n%s", what, again.status, again.body)
		}
	}
}

// TestOwnSecret: who rotates the key they are signed in with sees the new secret, although
// the session ends with the old one.
func TestOwnSecret(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn(everything)
	page := b.post("/console/keys/1/rotate", b.get("/console/keys/1").form(t, "/console/keys/1/rotate", "graceHours", "0"))
	page.want(t, "the secret", http.StatusOK, `id="secret"`)
	s.Advance(2 * time.Second)
	b.get("/console/keys/1").wantMoved(t, "after the rotation", "/console/sign-in?next=%2Fconsole%2Fkeys%2F1")
	b.signIn(regexpFind(t, page.body, `<code id="secret">([^<]*)<`)).wantMoved(t, "sign in with it", "/console")
}

// TestForms: what people expect of forms and lists.
func TestForms(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn(everything)
	b.get("/console/").wantMoved(t, "with a slash", "/console")

	s.category(1000, "")
	form := b.get("/console/pets/new").form(t, "/console/pets", "name", "Rex", "category", "1,000")
	b.post("/console/pets", form).wantMoved(t, "a grouped number", "/console/pets/1").wantDone(t, "added")
	b.get("/console/pets/1").want(t, "the first time", http.StatusOK, `class="notice done"`)
	b.get("/console/pets/1/edit").want(t, "the form", http.StatusOK, `value="no name (1000)"`)
	if p := b.get("/console/pets/1"); strings.Contains(p.body, `class="notice done"`) {
		t.Error("reloading says again that it was added")
	}
	form = b.get("/console/keys/new").form(t, "/console/keys", "name", "shop", "plan", "enterprise", "perMinute", "1,000", "perDay", "1,000,000")
	b.post("/console/keys", form).want(t, "grouped limits", http.StatusOK)
	b.get("/console/keys/2").want(t, "grouped limits", http.StatusOK, "1,000 a minute, 1,000,000 a day")

	large := url.Values{"name": {strings.Repeat("x", 70<<10)}, "categoryId": {"1"}}
	b.post("/console/pets", large).want(t, "a large form", http.StatusRequestEntityTooLarge)

	b.post("/console/orders", b.get("/console/pets/1").form(t, "/console/orders")).wantMoved(t, "order", "/console/orders/1")
	s.order(s.Pet("Tom").ID)
	for path, rows := range map[string]int{"/console/orders": 2, "/console/orders?pet=1": 1, "/console/orders?pet=1&status=delivered": 0} {
		if got := strings.Count(b.get(path).body, `class="pet whole"`); got != rows {
			t.Errorf("%s: got %d rows, want %d", path, got, rows)
		}
	}
	b.get("/console/orders?order=1").wantMoved(t, "an id", "/console/orders/1")
	b.get("/console/orders?order=9").want(t, "an id that no order has", http.StatusBadRequest, "No order has this id")
}

// TestWayBack: an error page leads back, and a form that was over the limit can be sent
// again as it was typed.
func TestWayBack(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.category(7, "dogs")
	secret, _ := s.Key("shop", everything, 3)
	b := s.browser()
	b.signIn(secret)
	form := b.get("/console/pets/new").form(t, "/console/pets", "name", "Rex & <Co>", "category", "dogs")
	b.get("/console/categories")
	b.header.Set("Referer", s.URL+"/console/pets/new")
	p := b.post("/console/pets", form)
	p.want(t, "over the limit", http.StatusTooManyRequests, `<a class="button" href="/console/pets/new">Back</a>`)
	again := p.form(t, "/console/pets")
	if form.Set("once", again.Get("once")); again.Encode() != form.Encode() {
		t.Errorf("got the form %v, want %v", again, form)
	}
	s.Advance(time.Minute)
	b.post("/console/pets", again).wantMoved(t, "sent again", "/console/pets/1")

	// A form that was refused may be sent again even if it takes effect only once.
	form = b.get("/console/keys/new").form(t, "/console/keys", "name", "Zoë & Co")
	b.get("/console/categories")
	p = b.post("/console/keys", form)
	p.want(t, "over the limit", http.StatusTooManyRequests)
	s.Advance(time.Minute)
	b.post("/console/keys", p.form(t, "/console/keys")).want(t, "sent again", http.StatusOK, `id="secret"`)
	s.Advance(time.Minute)
	b.header.Set("Referer", "https://elsewhere.example/console/keys")
	if p := b.get("/console/pets/99"); strings.Contains(p.body, ">Back<") {
		t.Error("the way back leads to where another site says")
	}
}

// TestFormWithoutASession: it changes nothing and leads to sign-in, and then back.
func TestFormWithoutASession(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.Pet("Rex")
	b := s.browser()
	before := s.content()
	for action, page := range map[string]string{
		"/console/pets": "/console/pets/new", "/console/pets/1": "/console/pets/1/edit", "/console/orders": "/console/pets/1", "/console/keys/1/rotate": "/console/keys/1",
	} {
		b.post(action, url.Values{"name": {"Max"}, "petId": {"1"}}).want(t, action, http.StatusUnauthorized, `name="next" value="`+page+`"`)
	}
	if after := s.content(); after != before {
		t.Errorf("the store changed from\n%s\nto\n%s", before, after)
	}
}

// TestPages: a list leads forth and back, with its filters.
func TestPages(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn(everything)
	for i := range 50 {
		s.Pet(fmt.Sprint("pet ", i))
	}
	names := func(p shown) (all []string) {
		for _, m := range petLink.FindAllStringSubmatch(p.body, -1) {
			all = append(all, m[1])
		}
		return all
	}
	for _, filter := range []string{"status=available", "find=pet"} {
		page := b.get("/console/pets?" + filter)
		var pages [][]string
		seen := map[string]bool{}
		for {
			pages = append(pages, names(page))
			for _, name := range names(page) {
				seen[name] = true
			}
			link := pagerLink["next"].FindStringSubmatch(page.body)
			if link == nil {
				break
			}
			if !strings.Contains(link[1], filter) {
				t.Errorf("the next page is %s, want the filter %s too", link[1], filter)
			}
			page = b.get(html.UnescapeString(link[1]))
		}
		if len(pages) != 3 || len(seen) != 50 {
			t.Fatalf("%s: got %d pets on %d pages, want 50 on 3", filter, len(seen), len(pages))
		}
		for i := len(pages) - 2; i >= 0; i-- {
			page = b.get(html.UnescapeString(regexpFind(t, page.body, `rel="prev" href="([^"]*)"`)))
			if got := names(page); !slices.Equal(got, pages[i]) {
				t.Errorf("%s: back to page %d: got %q, want %q", filter, i+1, got, pages[i])
			}
		}
		if pagerLink["prev"].MatchString(page.body) {
			t.Errorf("%s: the first page leads further back", filter)
		}
	}
}

// TestNamesThatCannotBeSeen: a name without a visible character is shown as such.
func TestNamesThatCannotBeSeen(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn(everything)
	pet := fmt.Sprint("/console/pets/", s.Pet("Rex").ID) // of the category 1
	for name, hidden := range map[string]bool{"\u200b\u2060": true, "\u2800": true, "\u3164 \ufe0f": true, "\u202e": true, "\u0301": false, "猫": false, "👩‍👧": false, "!": false} {
		s.category(1, name)
		for _, path := range []string{"/console/categories", "/console/categories/1", "/console/pets", pet} {
			now, _, _ := strings.Cut(b.get(path).body, `id="history"`)
			if got := strings.Contains(now, "<em>no visible character</em>"); got != hidden {
				t.Errorf("%s, %+q: shown as such: %t, want %t", path, name, got, hidden)
			}
		}
	}
	s.Pet("\u200b")
	b.get("/console/events?type=pet.*").want(t, "the events", http.StatusOK, "<em>no visible character</em>, <bdi>available</bdi>")
	b.get("/console/pets/2").want(t, "its history", http.StatusOK, `name</span> <em>no visible character</em>`)
}
