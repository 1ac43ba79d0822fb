//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"animalstore/internal/testenv"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// TestConsole uses the console as people do. If ANIMALSTORE_AXE names a copy of
// axe-core, every page is checked with its rules: see interop/axe.
func TestConsole(t *testing.T) {
	t.Parallel()
	testenv.Slow(t)
	browser := startBrowser(t)
	s := seeded(t, "--webhook-networks", "127.0.0.0/8")
	key := s.ownerKey()
	addUsage(t, s.database)
	p := openTab(t, browser, s)
	p.open(s, "/console", "#key")
	p.checkPage("sign-in")
	p.signIn(s, key)
	p.checkPage("overview")
	p.do("open the usage", click(`.rail [href="/console/usage"]`), visible(".plot svg"), click(`.tabs [href$="?period=90d"]`), visible(`.tabs [href$="?period=90d"][aria-current]`))
	p.checkPage("usage")
	p.wantLocalTimes(s)
	p.browsePets()
	p.wantTwoLines(s)
	p.browseKeys(s)
	p.browseEvents(s)
	p.useWebhooks(s)
	p.open(s, "/console/system", ".plot svg")
	p.checkPage("system")
	p.findPets(s)
	p.wantClean()
	p.reloadForms(s)
	p.browseProblems(s)

	p.do("sign out", click(".who button"), visible("#key"))
	p.open(s, "/console/pets", "#key")
	withoutScript(t, browser, s, key)
}

// wantLocalTimes: times are shown in the reader's zone, with UTC in a tooltip, and today
// begins at midnight there.
func (p *tab) wantLocalTimes(s *server) {
	p.t.Helper()
	zone := func(id string) {
		p.t.Helper()
		p.do("move to "+id, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
			_, err := cdp.Call(ctx, target, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: id})
			return err
		}))
	}
	zone("Asia/Tokyo")
	p.open(s, "/console/usage", "#day + .figure")
	if got := eval[[]string](p, `(e => [e.textContent, e.title])(document.querySelector("[aria-labelledby=day] time"))`); !strings.Contains(got[0], "09:00:00") || !strings.HasSuffix(got[1], ", 00:00:00 UTC") {
		p.t.Errorf("in Tokyo, the end of the UTC day is shown as %q, want 9:00 with the time in UTC", got)
	}
	p.open(s, "/console", "#today")
	p.do("see what changed today", click("#today"), visible(".lead time"))
	p.checkPage("today")
	at, _ := url.Parse(eval[string](p, `location.href`))
	since, err := time.Parse(time.RFC3339, at.Query().Get("since"))
	if err != nil || time.Since(since) > 24*time.Hour || since.UTC().Format("15:04:05") != "15:00:00" {
		p.t.Errorf("in Tokyo, today begins at %q (%v), want the last midnight there", at.Query().Get("since"), err)
	}
	zone("")
}

// addUsage gives the owner's key a history of requests.
func addUsage(t *testing.T, database string) {
	t.Helper()
	now := time.Now().UTC().Truncate(time.Hour)
	var rows []string
	for hour := range 90 * 24 {
		at := now.Add(-time.Duration(hour+1) * time.Hour)
		refused := 0
		if hour%31 < 4 {
			refused = 40 + hour%17*9
		}
		rows = append(rows, fmt.Sprintf("(1, %d, %d, %d)", at.UnixMilli(), 200+(hour*hour)%173+20*(at.Hour()%12), refused))
	}
	execute(t, database, "INSERT INTO usage (key_id, hour, admitted, refused) VALUES "+strings.Join(rows, ", "))
}

// execute changes the database file of a running server.
func execute(t *testing.T, database, statement string) {
	t.Helper()
	conn, err := sqlite.OpenConn(database, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetBusyTimeout(10 * time.Second)
	if err := sqlitex.ExecuteTransient(conn, statement, nil); err != nil {
		t.Fatal(err)
	}
}

// checkPage checks that a page fits on every device, and what axe-core says about it.
func (p *tab) checkPage(name string) {
	p.t.Helper()
	p.wantFits()
	file := os.Getenv("ANIMALSTORE_AXE")
	if file == "" {
		return
	}
	axe, err := os.ReadFile(file)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, scheme := range []string{"dark", "light"} {
		p.lookAs(1280, 900, scheme)
		eval[any](p, string(axe)+"; null")
		eval[any](p, `window.violations = null; axe.run().then(r => { window.violations = JSON.stringify(r.violations.map(v => [v.id, v.nodes.map(n => n.html.slice(0, 200) + " " + n.failureSummary)])) }); null`)
		testenv.Eventually(p.t, "axe is done", func() bool { return eval[bool](p, `window.violations !== null`) })
		var violations []any
		if err := json.Unmarshal([]byte(eval[string](p, `window.violations`)), &violations); err != nil {
			p.t.Fatal(err)
		}
		for _, v := range violations {
			p.t.Errorf("%s, %s: axe finds %v, want nothing", name, scheme, v)
		}
	}
}

func (p *tab) browsePets() {
	p.t.Helper()
	p.do("open the pets", click(`.rail [href="/console/pets"]`), visible("table.rows"))
	p.checkPage("pets")
	p.do("turn the page", click("main [rel=next]"), visible("main [rel=prev]"), visible("main [rel=next]"))
	p.do("add a pet", click(".heading .button"), visible("#category"))
	p.checkPage("pet-new")
	p.do("send the form", write("#name", "Zoë <b>&</b> \u202Efriends"), write("#category", "cats"), click("main form .primary"), visible(".notice.done"))
	if got := p.text("h1"); !strings.Contains(got, "Zoë <b>&</b>") {
		p.t.Errorf("the new pet is called %q, want the name as text", got)
	}
	p.do("order it", click(`form[action="/console/orders"] button`), visible(".moves"))
	p.checkPage("order")
	p.do("approve the order", click(".moves form:first-child button"), visible(".tag.approved"))
	p.do("deliver the order", click(".moves details:first-child summary"), click(".moves details:first-child button"), visible(".tag.delivered"))
	p.do("open the pet", click(".facts a"), visible(".tag.sold"))
	p.checkPage("pet-sold")
	p.do("open another", click(`.rail [href="/console/pets"]`), visible("table.rows"), click("tbody tr:nth-child(2) a"), visible("#change"))
	p.checkPage("pet")
	p.do("open the orders", click(`.rail [href="/console/orders"]`), visible("table.rows"))
	p.checkPage("orders")
	p.do("open the categories", click(`.rail [href="/console/categories"]`), visible("#add"))
	p.checkPage("categories")
	p.do("open a category", click("tbody a"), visible("#rename"))
	p.checkPage("category")
}

// wantTwoLines: a list shows two lines of a long name, and the pet's page all of it.
func (p *tab) wantTwoLines(s *server) {
	p.t.Helper()
	names := []string{
		strings.Repeat("x", 1024), strings.Repeat("ש", 1024), "Z" + strings.Repeat("\u0301", 1023), strings.Repeat("long name ", 102),
	}
	for _, name := range names {
		body, err := json.Marshal(map[string]any{"name": name, "categoryId": 3})
		if err != nil {
			p.t.Fatal(err)
		}
		wantStatus(p.t, newClient(p.t, s, s.ownerKey()).do(p.t, "POST", "/v1/pets", string(body)), 201, "")
	}
	p.open(s, "/console/pets", "table.rows")
	for _, width := range []int64{390, 1600} {
		p.lookAs(width, 900, "light")
		for _, path := range []string{"/console", "/console/pets", "/console/events"} {
			p.open(s, path, "table.rows")
			if high := eval[[]string](p, `[...document.querySelectorAll(".rows .name .clamp")]
				.filter(e => e.clientHeight > 2 * parseFloat(getComputedStyle(e).lineHeight) + 1)
				.map(e => e.clientHeight + " " + e.textContent.slice(0, 20))`); len(high) > 0 {
				p.t.Errorf("%s at %d pixels shows more than two lines of %q", path, width, high)
			}
		}
	}
	p.do("open one", click(".feed a[href^='/console/pets/']"), visible("h1"))
	p.checkPage("pet-long")
	if got := eval[int](p, `[...document.querySelector("h1").innerText].length`); got < 1000 {
		p.t.Errorf("the pet's page shows %d characters of its name, want all", got)
	}
}

// browseEvents opens the feed and sees an event arrive.
func (p *tab) browseEvents(s *server) {
	p.t.Helper()
	p.do("open the events", click(`.rail [href="/console/events"]`), visible(".feed"), visible(".following"))
	p.checkPage("events")
	wantStatus(p.t, newClient(p.t, s, s.ownerKey()).do(p.t, "POST", "/v1/pets", `{"name":"Live <i>","categoryId":3}`), 201, "")
	p.do("see it", visible(".feed .new"))
	if got := p.text(".feed .new"); !strings.Contains(got, "pet.created") || !strings.Contains(got, "Live <i>") || !strings.Contains(got, "owner") {
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
	p.checkPage("keys")
	p.do("create a key", click(".heading .button"), visible("#plan"))
	p.checkPage("key-new")
	p.do("send the form", write("#name", "partner"), click("main form .primary"), visible("#secret"))
	p.checkPage("secret")
	secret := p.text("#secret")
	if copied := p.copied("figure .copy"); copied != secret {
		p.t.Errorf("the button copies %q, want %q", copied, secret)
	}
	wantStatus(p.t, newClient(p.t, s, secret).get(p.t, "/v1/pets"), 200, "")
	p.do("open the key", click("main .primary"), visible("#rotate"))
	p.checkPage("key")
	p.do("rotate it", click(`form[action$="/rotate"] button`), visible("#secret"))
	p.do("open the key", click("main .primary"), visible("#revoke"))
	p.do("revoke it", click(".danger summary"), click("[name=confirm]"), click(`form[action$="/revoke"] button`), visible(".tag.revoked"))
	testenv.Eventually(p.t, "the key is refused", func() bool {
		return newClient(p.t, s, secret).get(p.t, "/v1/pets").status == 401
	})
}

// reloadForms: pages after a form can be reloaded, left and returned to without sending
// the form again, and text typed before the session ended isn't lost.
func (p *tab) reloadForms(s *server) {
	p.t.Helper()
	reload := func(what, then string) {
		p.t.Helper()
		eval[any](p, `document.documentElement.dataset.before = "yes"; location.reload(); null`)
		p.do(what, visible("html:not([data-before]) "+then)) // JavaScript can fail while the page is replaced
		testenv.Eventually(p.t, what, func() bool { return eval[bool](p, `document.readyState === "complete"`) })
	}
	p.open(s, "/console/keys/new", "#name")
	p.do("create a key", write("#name", "reloaded"), click("main form .primary"), visible("#secret"))
	secret := p.text("#secret")
	reload("reload the secret", "main .primary")
	if strings.Contains(eval[string](p, `document.documentElement.innerHTML`), secret) {
		p.t.Error("reloading the page of a secret shows it again")
	}
	p.do("open the key", click("main .primary"), visible("#rotate"))
	p.lookAs(390, 844, "light")
	p.do("rotate it wrongly", write("#graceHours", "9999"), click(`form[action$="/rotate"] button`), visible("#wrong"))
	if got := eval[string](p, `document.activeElement.id`); got != "graceHours" {
		p.t.Errorf("the focus is on %q, want the field with the error", got)
	}
	testenv.Eventually(p.t, "the error is in view", func() bool {
		return eval[bool](p, `(r => r.top >= 0 && r.bottom <= innerHeight)(document.querySelector("#wrong").getBoundingClientRect())`)
	})
	reload("reload the error", "#rotate")
	if eval[bool](p, `!!document.querySelector("#wrong")`) {
		p.t.Error("reloading an error sends the form again")
	}

	p.open(s, "/console/pets/new", "#name")
	eval[any](p, `fetch("/console/sign-out", { method: "POST" }).then(() => { window.out = true }); null`)
	testenv.Eventually(p.t, "another tab signs out", func() bool { return eval[bool](p, `window.out === true`) })
	p.do("send a form", write("#name", "Zoë & Co"), write("#category", "cats"), click("main form .primary"), visible("#key"))
	reload("reload the sign-in page", "#key")
	p.do("sign in", write("#key", s.ownerKey()), click("form .primary"), visible("#category"))
	if got := eval[[]string](p, `["#name", "#category"].map(e => document.querySelector(e).value)`); got[0] != "Zoë & Co" || got[1] != "cats" {
		p.t.Errorf("after signing in, the form has %q, want what was typed", got)
	}
	p.do("send it", click("main form .primary"), visible(".notice.done"))
	reload("reload the new pet", "#change")
	if eval[bool](p, `!!document.querySelector(".notice.done")`) {
		p.t.Error("reloading says again that the pet was added")
	}
}

// browseProblems opens the pages that report problems.
func (p *tab) browseProblems(s *server) {
	p.t.Helper()
	p.open(s, "/console/pets/7", "#change")
	p.do("make it stale", chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := chromedp.Evaluate[any](`document.querySelector("[name=etag]").value = '"stale"'; null`)(ctx, target)
		return err
	}), write("#name", "Mine"), click("main form .primary"), visible(".notice.wrong table"))
	p.checkPage("pet-stale")
	p.do("save it anyway", click("main form .primary"), visible(".notice.done"))
	p.do("choose a new category", write("#category", "Dragons"), click("main form .primary"), visible("#wrong"))
	p.checkPage("pet-new-category")
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
	other.open(s, "/console/pets/5", ".facts")
	other.checkPage("pet-read-only")
	for range 70 {
		newClient(p.t, s, reader).get(p.t, "/v1/limits")
	}
	other.open(s, "/console", ".countdown")
	other.checkPage("limited")
	other.signIn(s, s.ownerKey())
}

// withoutScript uses the console without JavaScript, with the keyboard.
func withoutScript(t *testing.T, browser context.Context, s *server, key string) {
	t.Helper()
	p := openTab(t, browser, s)
	p.disableScript()
	p.do("open the console", chromedp.Navigate(s.url+"/console/pets/new"), visible("#key"))
	p.do("sign in with Enter", write("#key", key), chromedp.KeyEvent("\r"), visible("#category"))
	p.do("add a pet with Enter", write("#name", "Tab"), write("#category", "cats"), chromedp.KeyEvent("\r"), visible(".notice.done"))
	if got := p.text(".who"); !strings.Contains(got, "owner") {
		t.Errorf("the page says %q, want who is signed in", got)
	}
	if got := p.text("h1"); got != "Tab" {
		t.Errorf("the page is about %q, want the new pet", got)
	}
	p.do("find it with Enter", write("#find", "TAB"), chromedp.KeyEvent("\r"), visible(".lead a"))
	if got := p.text("tbody"); !strings.Contains(got, "Tab") || !strings.Contains(got, "Cats") {
		t.Errorf("the list has %q, want the new pet with its category", got)
	}
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
	p.do("press Escape", chromedp.KeyEvent(kb.Escape))
	if got := state(); got != "combobox|false|matches|" {
		p.t.Errorf("after Escape, the box is %s, want it closed", got)
	}
	p.do("see it again", write("#find", "größ"), visible("#matches li"), chromedp.KeyEvent(kb.ArrowDown))
	if got := state(); !strings.HasPrefix(got, "combobox|true|matches|Größe ") {
		p.t.Errorf("after the arrow key, the box is %s, want the match to be active", got)
	}
	p.do("press Enter", chromedp.KeyEvent(kb.Enter), visible(".facts"))
	if got := p.text("h1"); got != "Größe" {
		p.t.Errorf("the page is about %q, want the match", got)
	}
}
