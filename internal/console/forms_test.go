package console_test

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// TestErrorsAtTheirFields: an error is beside its input, which has the focus and what was
// typed.
func TestErrorsAtTheirFields(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn(everything)
	pet := fmt.Sprint("/console/pets/", s.pet("Rex").ID)
	for _, test := range []struct{ page, action, field, value string }{
		{"/console/pets/new", "/console/pets", "name", strings.Repeat("x", 1025)},
		{"/console/pets/new", "/console/pets", "categoryId", "dogs"},
		{"/console/pets/new", "/console/pets", "categoryId", "1,00"},
		{pet, pet, "name", "  "},
		{pet, pet, "categoryId", "dogs"},
		{"/console/categories", "/console/categories", "id", "one"},
		{"/console/categories/1", "/console/categories/1", "name", ""},
		{"/console/keys/new", "/console/keys", "perDay", "many"},
		{"/console/keys/new", "/console/keys", "perMinute", "0"},
		{"/console/keys/new", "/console/keys", "expires", "2020-01-01T00:00:00"},
		{"/console/webhooks", "/console/webhooks", "url", "ftp://nowhere"},
		{"/console/webhooks", "/console/webhooks", "types", "dog.*"},
	} {
		form := b.get(test.page).form(t, test.action)
		for name, value := range map[string]string{"name": "Max", "categoryId": "1", "id": "5", "plan": "enterprise", "perMinute": "1", "perDay": "1", "url": "https://192.0.2.1/", test.field: test.value} {
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
	p.want(t, "no permission", http.StatusBadRequest, `<fieldset tabindex="-1" aria-invalid="true"`)
}

// TestForms: what people expect of forms and lists.
func TestForms(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn(everything)
	b.get("/console/").wantMoved(t, "with a slash", "/console")

	form := b.get("/console/pets/new").form(t, "/console/pets", "name", "Rex", "categoryId", "1,000")
	b.post("/console/pets", form).wantMoved(t, "a grouped number", "/console/pets/1").wantDone(t, "added")
	b.get("/console/pets/1").want(t, "the first time", http.StatusOK, "Added.", `value="1000"`)
	if p := b.get("/console/pets/1"); strings.Contains(p.body, "Added.") {
		t.Error("reloading says again that it was added")
	}
	form = b.get("/console/keys/new").form(t, "/console/keys", "name", "shop", "plan", "enterprise", "perMinute", "1,000", "perDay", "1,000,000")
	b.post("/console/keys", form).want(t, "grouped limits", http.StatusOK, "Key created")
	b.get("/console/keys/2").want(t, "grouped limits", http.StatusOK, "1,000 a minute, 1,000,000 a day")

	large := url.Values{"name": {strings.Repeat("x", 70<<10)}, "categoryId": {"1"}}
	b.post("/console/pets", large).want(t, "a large form", http.StatusRequestEntityTooLarge, "The form is too large", "64.0 KiB")

	b.post("/console/orders", b.get("/console/pets/1").form(t, "/console/orders")).wantMoved(t, "order", "/console/orders/1")
	b.get("/console/orders/1").want(t, "an order", http.StatusOK, "<summary class=\"button\">Cancel the order</summary>", "Yes, cancel it")

	for path, link := range map[string]string{"/console/pets": "/console/pets/1", "/console/keys": "/console/keys/1", "/console/categories": "/console/categories/1000"} {
		id := link[strings.LastIndex(link, "/")+1:]
		b.get(path).want(t, path, http.StatusOK, `<td><a href="`+link+`">`+id+`</a></td>`)
	}
}

// TestWayBack: an error page leads back, and a form that was over the limit can be sent
// again as it was typed.
func TestWayBack(t *testing.T) {
	t.Parallel()
	s := start(t)
	secret, _ := s.key("shop", everything, 3)
	b := s.browser()
	b.signIn(secret)
	form := b.get("/console/pets/new").form(t, "/console/pets", "name", "Rex & <Co>", "categoryId", "7")
	b.get("/console/categories")
	b.header.Set("Referer", s.url+"/console/pets/new")
	p := b.post("/console/pets", form)
	p.want(t, "over the limit", http.StatusTooManyRequests, `<a class="button" href="/console/pets/new">Back</a>`)
	again := p.form(t, "/console/pets")
	if again.Encode() != form.Encode() {
		t.Errorf("got the form %v, want %v", again, form)
	}
	s.advance(time.Minute)
	b.post("/console/pets", again).wantMoved(t, "sent again", "/console/pets/1")
	b.header.Set("Referer", "https://elsewhere.example/console/keys")
	if p := b.get("/console/pets/99"); strings.Contains(p.body, ">Back<") {
		t.Error("the way back leads to where another site says")
	}
}

// TestPreviousPages: a list leads forth and back, with its filters.
func TestPreviousPages(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn(everything)
	for i := range 110 {
		s.pet(fmt.Sprint("pet ", i))
	}
	var pages []string
	page := b.get("/console/pets?status=available")
	if strings.Contains(page.body, "Previous page") {
		t.Error("the first page has a previous one")
	}
	for {
		pages = append(pages, page.body)
		link := pagerLink["next"].FindStringSubmatch(page.body)
		if link == nil {
			break
		}
		page = b.get(html.UnescapeString(link[1]))
	}
	if len(pages) != 5 {
		t.Fatalf("got %d pages, want 5", len(pages))
	}
	rows := func(body string) string { return body[strings.Index(body, "<tbody>"):strings.Index(body, "</tbody>")] }
	for i := len(pages) - 2; i >= 0; i-- {
		page = b.get(html.UnescapeString(regexpFind(t, page.body, `rel="prev" href="([^"]*)"`)))
		if rows(page.body) != rows(pages[i]) || !strings.Contains(page.body, "<option selected>available") {
			t.Errorf("back to page %d: got\n%s\nwant\n%s", i+1, rows(page.body), rows(pages[i]))
		}
	}
	if strings.Contains(page.body, "Previous page") {
		t.Error("the first page has a previous one, after going back to it")
	}
}
