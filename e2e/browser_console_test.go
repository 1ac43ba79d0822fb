//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"animalstore/internal/testenv"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// testConsole uses the forms of the console as people do. testPages checks the pages
// themselves.
func testConsole(t *testing.T, browser context.Context) {
	s := seeded(t)
	p := openTab(t, browser, s)
	p.open(s, "/console", "#key")
	p.checkPage("sign-in")
	p.signIn(s, s.ownerKey())
	p.wantLocalTimes(s)
	p.browsePets()
	p.browseKeys(s)
	p.browseEvents(s)
	p.findPets(s)
	p.wantClean()
	p.reloadError(s)
	p.browseProblems(s)

	p.do("sign out", click(".who button"), visible("#key"))
	p.open(s, "/console/pets", "#key")
}

// wantLocalTimes: times are shown in the reader's zone, with UTC in a tooltip, and today
// begins at midnight there.
func (p *tab) wantLocalTimes(s *server) {
	p.t.Helper()
	zone := func(id string) {
		p.t.Helper()
		p.do("move to "+id, send(emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: id}))
	}
	zone("Asia/Tokyo")
	p.open(s, "/console/usage", "#day + .figure")
	if got := eval[[]string](p, `(e => [e.textContent, e.title])(document.querySelector("[aria-labelledby=day] time"))`); !strings.Contains(got[0], "09:00") || !strings.HasSuffix(got[1], ", 00:00:00 UTC") {
		p.t.Errorf("in Tokyo, the end of the UTC day is shown as %q, want 9:00 with the time in UTC", got)
	}
	p.open(s, "/console", "#today")
	p.do("see what changed today", click("#today"), visible(".lead time"))
	at, _ := url.Parse(eval[string](p, `location.href`))
	since, err := time.Parse(time.RFC3339, at.Query().Get("since"))
	if err != nil || time.Since(since) > 24*time.Hour || since.UTC().Format("15:04:05") != "15:00:00" {
		p.t.Errorf("in Tokyo, today begins at %q (%v), want the last midnight there", at.Query().Get("since"), err)
	}
	zone("")
}

// photograph writes a picture of the screen to the directory that ANIMALSTORE_SCREENSHOTS
// names.
func (p *tab) photograph(name string) {
	p.t.Helper()
	dir := os.Getenv("ANIMALSTORE_SCREENSHOTS")
	if dir == "" {
		return
	}
	p.do("take a picture", chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		shot, err := cdp.Call(ctx, target, cdppage.CaptureScreenshot, cdppage.CaptureScreenshotParams{})
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, name+".png"), shot.Data, 0o644)
	}))
}

// checkPage checks that a page fits on every device. If ANIMALSTORE_AXE names a copy of
// axe-core, the page must also keep its rules: see interop/axe.
func (p *tab) checkPage(name string) {
	p.t.Helper()
	p.wantFits()
	if os.Getenv("ANIMALSTORE_SCREENSHOTS") != "" {
		for _, width := range []int64{390, 1280} {
			p.lookAs(width, 900, "light")
			p.photograph(fmt.Sprint(name, "-", width))
		}
	}
	file := os.Getenv("ANIMALSTORE_AXE")
	if file == "" {
		return
	}
	axe, err := os.ReadFile(file)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, look := range []struct {
		width  int64
		scheme string
	}{{390, "dark"}, {1280, "dark"}, {1280, "light"}} {
		p.lookAs(look.width, 900, look.scheme)
		eval[any](p, string(axe)+"; null")
		eval[any](p, `window.violations = null; axe.run().then(r => { window.violations = JSON.stringify(r.violations.map(v => [v.id, v.nodes.map(n => n.html.slice(0, 200) + " " + n.failureSummary)])) }); null`)
		testenv.Eventually(p.t, "axe is done", func() bool { return eval[bool](p, `window.violations !== null`) })
		var violations []any
		if err := json.Unmarshal([]byte(eval[string](p, `window.violations`)), &violations); err != nil {
			p.t.Fatal(err)
		}
		for _, v := range violations {
			p.t.Errorf("%s, %v: axe finds %v, want nothing", name, look, v)
		}
	}
}

func (p *tab) browsePets() {
	p.t.Helper()
	p.do("open the pets", click(`.rail [href="/console/pets"]`), visible("table.rows"))
	p.checkPage("pets")
	p.do("turn the page", click("main [rel=next]"), visible("main [rel=prev]"), visible("main [rel=next]"))
	p.do("add a pet", click(".heading .primary"), visible("#category"))
	p.do("send the form", write("#name", "Zoë <b>&</b> \u202Efriends"), write("#category", "cats"), click("main form .primary"), visible(".notice.done"))
	if got := p.text("h1"); !strings.Contains(got, "Zoë <b>&</b>") {
		p.t.Errorf("the new pet is called %q, want the name as text", got)
	}
	p.do("mark all pets", click(`.rail [href="/console/pets"]`), click("#all"))
	p.checkPage("marks")
	p.do("ask to sell them", chromedp.SetValue(chromedp.CSS("#change"), "sold"), click("#marked button"), visible(".marked"))
	p.checkPage("marked")
}

// browseEvents opens the feed and sees an event arrive.
func (p *tab) browseEvents(s *server) {
	p.t.Helper()
	p.do("open the events", click(`.rail [href="/console/events"]`), visible(".feed"), visible(".following"))
	wantStatus(p.t, newClient(p.t, s, s.ownerKey()).do(p.t, "POST", "/v1/pets", `{"name":"Live <i>","categoryId":3}`), 201, "")
	p.do("see it", visible(".feed .new"))
	if got := p.text(".feed .new"); !strings.Contains(got, "Pet added") || !strings.Contains(got, "Live <i>") || !strings.Contains(got, "owner") {
		p.t.Errorf("the new event is shown as %q, want what happened and who did it", got)
	}
	till := newKey(p.t, s.database, "--name", "till <i>", "--permissions", "write")
	p.do("see the key", visible(".feed .new ~ .new"))
	wantStatus(p.t, newClient(p.t, s, till).do(p.t, "POST", "/v1/pets", `{"name":"Mia","categoryId":3}`), 201, "")
	p.do("see its pet", visible(".feed .new ~ .new ~ .new"))
	if got := p.text(".feed .new td:last-child a"); got != "till <i>" {
		p.t.Errorf("the pet of the new key is shown as by %q, want the key's name", got)
	}
}

func (p *tab) browseKeys(s *server) {
	p.t.Helper()
	p.do("open the keys", click(`.rail [href="/console/keys"]`), visible("table.rows"))
	p.do("create a key", click(".heading .button"), visible("#plan"))
	p.do("send the form", write("#name", "partner"), click("main form .primary"), visible("#secret"))
	p.checkPage("secret")
	secret := p.text("#secret")
	if copied := p.copied("figure .copy"); copied != secret {
		p.t.Errorf("the button copies %q, want %q", copied, secret)
	}
	if got := eval[string](p, `document.activeElement.className`); got != "lead" {
		p.t.Errorf("the focus is on %q, want what was done", got)
	}
	wantStatus(p.t, newClient(p.t, s, secret).get(p.t, "/v1/pets"), 200, "")
	p.do("open the key", click("main .primary"), visible("#rotate"))
	if eval[bool](p, `document.querySelector("#graceHours").checkVisibility()`) {
		p.t.Error("rotating doesn't ask first")
	}
}

// reloadError: an error is in view, with the focus on its field, and reloading the page
// doesn't send the form again.
func (p *tab) reloadError(s *server) {
	p.t.Helper()
	p.open(s, "/console/keys/1", "#rotate")
	p.lookAs(390, 844, "light")
	p.do("rotate it wrongly", click("[aria-labelledby=rotate] summary"), write("#graceHours", "9999"), click(`form[action$="/rotate"] button`), visible("#wrong"))
	if got := eval[string](p, `document.activeElement.id`); got != "graceHours" {
		p.t.Errorf("the focus is on %q, want the field with the error", got)
	}
	testenv.Eventually(p.t, "the error is in view", func() bool {
		return eval[bool](p, `(r => r.top >= 0 && r.bottom <= innerHeight)(document.querySelector("#wrong").getBoundingClientRect())`)
	})
	eval[any](p, `document.documentElement.dataset.before = "yes"; location.reload(); null`)
	p.do("reload", visible("html:not([data-before]) #rotate")) // JavaScript can fail while the page is replaced
	testenv.Eventually(p.t, "the page is loaded", func() bool { return eval[bool](p, `document.readyState === "complete"`) })
	if eval[bool](p, `!!document.querySelector("#wrong")`) {
		p.t.Error("reloading an error sends the form again")
	}
}

// browseProblems opens the pages that report problems.
func (p *tab) browseProblems(s *server) {
	p.t.Helper()
	p.open(s, "/console/pets/7/edit", "#change")
	eval[any](p, `document.querySelector("[name=etag]").value = '"stale"'; null`)
	p.do("send a stale form", write("#name", "Mine"), click("main form .primary"), visible(".notice.wrong table"))
	p.checkPage("pet-stale")
	p.open(s, "/console/pets/999999", ".problem")
	p.checkPage("not-found")
	reader := strings.TrimSpace(run(p.t, "keys", "create", "--name", "reader", "--permissions", "read", "--database", "sqlite:"+s.database).stdout)
	other := openTab(p.t, p.ctx, s)
	other.open(s, "/console/sign-in", "#key")
	other.do("send a wrong key", write("#key", "ast_live_wrong"), click("form .primary"), visible(".notice.wrong"))
	other.checkPage("sign-in-wrong")
	other.signIn(s, reader)
	other.open(s, "/console/keys", ".problem")
	other.checkPage("not-allowed")
	for range 70 {
		newClient(p.t, s, reader).get(p.t, "/v1/limits")
	}
	other.open(s, "/console", ".countdown")
	other.checkPage("limited")
	p.signIn(s, s.ownerKey()) // both tabs share the session
}

// findPets uses the box on every page, whose suggestions work with the keyboard and are
// told to screen readers.
func (p *tab) findPets(s *server) {
	p.t.Helper()
	state := func() string {
		return eval[string](p, `(box => [box.getAttribute("role"), box.getAttribute("aria-expanded"), box.getAttribute("aria-controls"), document.querySelector("#" + (box.getAttribute("aria-activedescendant") || "none") + "[aria-selected=true]")?.textContent.replace(/\s+/g, " ")].join("|"))(document.querySelector("#find"))`)
	}
	wantStatus(p.t, newClient(p.t, s, s.ownerKey()).do(p.t, "POST", "/v1/pets", `{"name":"Größe","categoryId":2}`), 201, "")
	p.open(s, "/console", "#latest")
	p.do("find by name", write("#find", "GRÖSSE"), visible("#matches li"))
	if got := state(); got != "combobox|true|matches|" {
		p.t.Errorf("with a match, the box is %s, want it open", got)
	}
	p.checkPage("find")
	p.do("find nothing", write("#find", "nosuch"), visible("p.matches"))
	if got := p.text("p.matches"); !strings.Contains(got, "nosuch") {
		p.t.Errorf("without a match, the page says %q, want what it looked for", got)
	}
	p.do("find it again", write("#find", "GRÖSSE"), visible("#matches li"))
	p.do("press Escape", chromedp.KeyEvent(kb.Escape))
	if got := state(); got != "combobox|false|matches|" {
		p.t.Errorf("after Escape, the box is %s, want it closed", got)
	}
	p.do("see it again", write("#find", "größ"), visible("#matches li"), chromedp.KeyEvent(kb.ArrowDown))
	if got := state(); !strings.HasPrefix(got, "combobox|true|matches|GGröße Cats") {
		p.t.Errorf("after the arrow key, the box is %s, want the match to be active", got)
	}
	p.do("press Enter", chromedp.KeyEvent(kb.Enter), visible(".facts"))
	if got := p.text("h1"); got != "Größe" {
		p.t.Errorf("the page is about %q, want the match", got)
	}
}
