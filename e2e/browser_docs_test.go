//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"animalstore/internal/testenv"

	"github.com/chromedp/chromedp"
)

// testReference opens the public pages as people do.
func testReference(t *testing.T, browser context.Context) {
	s := seeded(t)
	t.Run("landing page", func(t *testing.T) { browseLanding(t, browser, s) })
	t.Run("docs", func(t *testing.T) { browseDocs(t, browser, s) })
	t.Run("snippets", func(t *testing.T) { browseSnippets(t, browser, s) })
	t.Run("guides", func(t *testing.T) { browseGuides(t, browser, s) })
}

func browseLanding(t *testing.T, browser context.Context, s *server) {
	p := openTab(t, browser, s)
	p.open(s, "/", "h1")
	p.wantFits()
	// The curl line must work unchanged.
	line := p.text("pre code")
	if copied := p.copied("figure .copy"); copied != line {
		t.Errorf("the button copies %q, want %q", copied, line)
	}
	if status, body := paste(t, line, "KEY="+s.ownerKey()); status != "200" || !strings.HasPrefix(body, `[{"id":60,`) {
		t.Errorf("%s\ngot %s %.100s, want 200 and the newest pet", line, status, body)
	}
	for _, link := range eval[[]string](p, `[...document.links].map(a => a.href)`) {
		if !strings.HasPrefix(link, s.url) {
			t.Errorf("a link leads to %s, want it on %s", link, s.url)
			continue
		}
		wantStatus(t, newClient(t, s, "").get(t, strings.TrimPrefix(link, s.url)), 200, "")
	}
	p.wantClean()
	p.do("follow the button", click("a.button"), visible("#listPets"))
}

func browseDocs(t *testing.T, browser context.Context, s *server) {
	key := s.ownerKey()
	p := openTab(t, browser, s)
	p.open(s, "/docs", "#listPets")
	p.wantFits()
	wantFilter(p)
	p.wantClean()

	p.do("enter the key", write("#key", key))
	p.do("send listPets", click("#listPets > summary"), click("#listPets [type=submit]"), visible("#listPets .outcome"))
	status, body := p.response("#listPets")
	var pets []pet
	if err := json.Unmarshal([]byte(body), &pets); status != "200" || err != nil || len(pets) != 20 || pets[0].ID != 60 {
		t.Errorf("listPets: got %s %s (%v), want 200 and the 20 newest of 60 pets", status, body, err)
	}

	// The next page is one click away, and the example requests it too.
	p.do("next page", click("#listPets .result .button"))
	testenv.Eventually(t, "the second page", func() bool {
		return eval[bool](p, `document.querySelector("#listPets .result .body")?.textContent.includes('"id": 40,') ?? false`)
	})
	if code := p.text("#listPets .curl code"); !strings.Contains(code, "cursor=") {
		t.Errorf("on the second page the example is %s", code)
	}
	p.do("choose parameters", write("#listPets-query-cursor", ""), write("#listPets-query-limit", "3"), write("#listPets-query-categoryId", "ë $x"))
	for language, want := range map[string]string{"curl": "limit=3", "js": "categoryId=%C3%AB+%24x"} {
		if code := eval[string](p, `document.querySelector("#listPets .`+language+` code").textContent`); !strings.Contains(code, want) || strings.Contains(code, "cursor=") {
			t.Errorf("the example in %s doesn't follow the parameters: %s", language, code)
		}
	}
	wantQuestion(p, s, key)

	const wanted = `{"name": "Zoë of the \"browser\" {,}", "categoryId": 9007199254740993, "status": "pending"}`
	p.do("send createPet", click("#createPet > summary"), write("#createPet textarea", wanted), click("#createPet [type=submit]"), visible("#createPet .outcome"))
	status, body = p.response("#createPet")
	want := pet{ID: 61, Name: `Zoë of the "browser" {,}`, CategoryID: 9007199254740993, Status: "pending"}
	if got, err := decodePet(body); status != "201" || err != nil || got != want || !strings.Contains(body, "\n  \"name\"") {
		t.Errorf("createPet: got %s %s (%v), want 201 %+v, indented", status, body, err, want)
	}
	if got := newClient(t, s, key).allPets(t, 0)[61]; got != want {
		t.Errorf("the store has %+v, want %+v", got, want)
	}
	p.do("open updatePet by its address", chromedp.Navigate(s.url+"/docs#updatePet"), visible("#updatePet .try"))

	// The key stays in the tab and nowhere else.
	p.do("reload", chromedp.Reload(), visible("#listPets"))
	if got := eval[string](p, `document.querySelector("#key").value`); got != key {
		t.Errorf("after a reload the page has the key %q, want the one that was entered", got)
	}
	if got := eval[string](p, `JSON.stringify(localStorage) + document.cookie`); got != "{}" {
		t.Errorf("the page stores %q beyond the tab, want nothing", got)
	}
	p.wantClean()
	other := openTab(t, browser, s)
	if other.open(s, "/docs", "#listPets"); eval[string](other, `document.querySelector("#key").value`) != "" {
		t.Error("another tab has the key too")
	}
}

// wantQuestion removes a pet: the page asks for confirmation and names the deployment.
func wantQuestion(p *tab, s *server, key string) {
	p.t.Helper()
	c := newClient(p.t, s, key)
	p.do("send deletePet without an id", click("#deletePet > summary"), click("#deletePet [type=submit]"))
	if eval[bool](p, `document.querySelector("#confirm").open`) {
		p.t.Error("a request without an id is asked about, want the id to be required")
	}
	p.do("send deletePet", write("#deletePet-path-petId", "59"), click("#deletePet [type=submit]"), visible("#confirm"))
	if got := p.text("#confirm"); !strings.Contains(got, "production") || !strings.Contains(got, "DELETE "+s.url+"/v1/pets/59") {
		p.t.Errorf("the question is %q, want the deployment and the request", got)
	}
	p.wantFits()
	p.do("cancel", click("#confirm [value=cancel]"))
	wantStatus(p.t, c.get(p.t, "/v1/pets/59"), 200, "")
	p.do("send deletePet again", click("#deletePet [type=submit]"), click("#confirm [value=send]"), visible("#deletePet .outcome"))
	wantStatus(p.t, c.get(p.t, "/v1/pets/59"), 404, "pet_not_found")
	if code := p.text("#deletePet .curl code"); !strings.Contains(code, "/v1/pets/59\"") {
		p.t.Errorf("the example is %s, want the id that was entered", code)
	}
	p.do("an example with headers and a body", click("#createPet > summary"), write("#createPet-header-Idempotency-Key", "it's"), write("#createPet textarea", `{"name": "O'Hara", "categoryId": 3}`))
	for language, wants := range map[string][]string{
		"curl": {`-H 'Idempotency-Key: it'\''s' \`, `-d '{"name": "O'\''Hara", "categoryId": 3}'`}, "js": {`"Idempotency-Key": "it's",`, `JSON.stringify({"name": "O'Hara", "categoryId": 3})`},
	} {
		code := eval[string](p, `document.querySelector("#createPet .`+language+` code").textContent`)
		for _, want := range wants {
			if !strings.Contains(code, want) {
				p.t.Errorf("the example of createPet in %s lacks %s: %s", language, want, code)
			}
		}
	}
	p.do("close", write("#createPet-header-Idempotency-Key", ""), click("#createPet > summary"))
}

func wantFilter(p *tab) {
	p.t.Helper()
	const shown = `[...document.querySelectorAll(".operation")].filter(e => e.checkVisibility()).map(e => e.id).join(" ")`
	all := eval[string](p, shown)
	for text, want := range map[string]string{"orders patch": "updateOrder", "ROTATE": "rotateKey rotateWebhook key.rotated", "": all, "no such unicorn": ""} {
		p.do("filter", write("#filter", "x"), write("#filter", text+" "))
		if got := eval[string](p, shown); got != want {
			p.t.Errorf("the filter %q shows %q, want %q", text, got, want)
		}
	}
	const passages = `[...document.querySelectorAll("#passages li")].filter(e => e.checkVisibility()).map(e => e.textContent).join("; ")`
	p.do("search the guides", write("#filter", "idempotency"))
	if eval[string](p, passages) == "" || eval[bool](p, `document.querySelector("#nothing").checkVisibility()`) {
		p.t.Error("the search finds nothing about idempotency in the guides")
	}
	eval[any](p, `document.querySelector("#filter").value = ""; document.querySelector("#filter").dispatchEvent(new Event("input")); null`)
	if got := eval[string](p, shown); got != all {
		p.t.Errorf("without a filter the page shows %q, want %q", got, all)
	}
}

// browseSnippets runs the examples exactly as the page shows them.
func browseSnippets(t *testing.T, browser context.Context, s *server) {
	key := s.ownerKey()
	p := openTab(t, browser, s)
	p.open(s, "/docs", "#listPets")
	code := func(operation, language string) string {
		t.Helper()
		p.do("choose "+language, click("#"+operation+" > summary"), click("#"+operation+"-"+language))
		text := p.text("#" + operation + " ." + language + " code")
		p.do("close", click("#"+operation+" > summary"))
		return text
	}
	for _, operation := range []string{"createPet", "listPets"} {
		if status, body := paste(t, code(operation, "curl"), "ANIMALSTORE_API_KEY="+key); status != "200" && status != "201" {
			t.Errorf("curl of %s: got %s %.200s", operation, status, body)
		}
		js := fmt.Sprintf("(async () => { const process = {env: {ANIMALSTORE_API_KEY: %q}}; const console = {log: x => { got = x }}; let got; %s; return JSON.stringify(got) })()", key, code(operation, "js"))
		eval[any](p, "window.answer = null; "+js+".then(x => { window.answer = x }, e => { window.answer = String(e) }); null")
		testenv.Eventually(t, "the JavaScript of "+operation+" is done", func() bool { return eval[bool](p, "window.answer !== null") })
		if got := eval[string](p, "window.answer"); !strings.HasPrefix(got, "{") && !strings.HasPrefix(got, "[{") {
			t.Errorf("JavaScript of %s: got %s", operation, got)
		}
		for _, language := range []string{"go", "ts", "python"} { // other tests run these
			if !strings.Contains(code(operation, language), s.url) {
				t.Errorf("the example of %s in %s doesn't have the address %s", operation, language, s.url)
			}
		}
	}
	if got := eval[string](p, `document.querySelector("#deletePet .snippets input:checked").value`); got == "curl" {
		t.Error("the language was chosen for one operation, want it for all")
	}
	p.wantClean()
}

// browseGuides reads a guide and tries its links and buttons.
func browseGuides(t *testing.T, browser context.Context, s *server) {
	p := openTab(t, browser, s)
	p.open(s, "/docs/guides", "h1")
	p.wantFits()
	p.do("open the first", click(".index li a"), visible(".guide h1"))
	p.wantFits()
	if got, want := p.copied(".guide figure .copy"), strings.TrimSpace(p.text(".guide pre code")); got != want {
		t.Errorf("the button copies %q, want %q", got, want)
	}
	p.lookAs(390, 844, "light")
	p.do("open the contents", click(".contents summary"), click(".contents li:last-child a"))
	if at := eval[float64](p, `document.querySelector(".guide h2:last-of-type").getBoundingClientRect().top`); at < 0 || at > 844 {
		t.Errorf("on a phone, the last section is at %.0f after a click in the contents, want it on the screen", at)
	}
	p.open(s, "/docs/guides/contract#limits", "#limits")
	p.wantFits() // wide tables
	p.wantClean()
}

// response returns the server's response to an operation as the page shows it.
func (p *tab) response(operation string) (status, body string) {
	p.t.Helper()
	return strings.TrimSpace(p.text(operation + " .outcome .status")), p.text(operation + " .result .body")
}
