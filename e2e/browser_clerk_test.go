//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"animalstore"
	"animalstore/internal/testenv"
)

// clerk is somebody who works in the store. The test counts how often they click.
type clerk struct {
	*tab
	clicks int
}

// click presses a button or follows a link, and waits for what it leads to.
func (c *clerk) click(selector, then string) {
	c.t.Helper()
	c.clicks++
	c.do("click "+selector, click(selector), visible(then))
}

// types types a text wherever the focus is.
func (c *clerk) types(text string) {
	c.t.Helper()
	c.do("type "+text, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, input.InsertText, input.InsertTextParams{Text: text})
		return err
	}))
}

// job does something from the overview, and fails the test if it takes too many clicks.
func (c *clerk) job(s *server, what string, most int, do func()) {
	c.t.Helper()
	c.open(s, "/console", "#latest")
	c.clicks = 0
	do()
	c.t.Logf("%s: %d clicks", what, c.clicks)
	if c.clicks > most {
		c.t.Errorf("%s takes %d clicks, want at most %d", what, c.clicks, most)
	}
}

// TestClerk does what people do in a store all day, with few clicks.
func TestClerk(t *testing.T) {
	t.Parallel()
	browser := startBrowser(t)
	database := newDatabase(t)
	if r := run(t, "seed", "--pets", "60", "--database", "sqlite:"+database); r.code != 0 {
		t.Fatalf("seed: exit code %d\n%s", r.code, r.stderr)
	}
	s := start(t, onDatabase(database))
	key := newKey(t, database, "--name", "clerk", "--plan", "business", "--permissions", "read,write")
	api := newClient(t, s, key)
	wantStatus(t, api.do(t, "POST", "/v1/pets", `{"name":"Größe the Quick","categoryId":2}`), 201, "")
	c := &clerk{tab: openTab(t, browser, s)}
	c.do("move to Tokyo", chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Tokyo"})
		return err
	}))
	c.open(s, "/console", "#key")
	c.do("sign in", write("#key", key), click("form .primary"), visible("#latest"))

	c.job(s, "see how many are available", 0, func() {
		var want animalstore.Inventory
		if err := json.Unmarshal([]byte(api.get(t, "/v1/store/inventory").body), &want); err != nil {
			t.Fatal(err)
		}
		for _, status := range animalstore.PetStatuses {
			if got := c.text(`.stock [href$="=` + string(status) + `"]`); strings.Join(strings.Fields(got), " ") != fmt.Sprint(want.Of(status), " ", status) {
				t.Errorf("the overview shows %q, want %d pets that are %s", got, want.Of(status), status)
			}
		}
		c.click(`.stock [href$="=sold"]`, `.tabs [aria-current][href$="=sold"]`)
		c.clicks = 0
	})
	c.job(s, "find a pet by its name", 1, func() {
		c.types("GRÖSSE")
		c.do("press Enter", chromedp.KeyEvent(kb.Enter), visible(".lead a"))
		c.checkPage("find-results")
		c.click("tbody .clamp", ".facts")
		if got := c.text("h1"); got != "Größe the Quick" {
			t.Errorf("the page is about %q, want the pet", got)
		}
	})
	c.job(s, "find a pet by its id", 0, func() {
		c.types("61")
		c.do("press Enter", chromedp.KeyEvent(kb.Enter), visible(".facts"))
		if got := c.text("h1"); got != "Größe the Quick" {
			t.Errorf("the page is about %q, want the pet", got)
		}
	})
	c.open(s, "/console/pets/61", ".facts")
	c.clicks = 0
	c.click(`form[action="/console/orders"] button`, ".tag.placed")
	c.click(".moves form:first-child button", ".tag.approved")
	c.click(".moves details:first-child summary", ".moves details:first-child button")
	c.click(".moves details:first-child button", ".tag.delivered")
	if t.Logf("sell a pet: %d clicks", c.clicks); c.clicks > 5 {
		t.Errorf("selling a pet takes %d clicks, want at most 5", c.clicks)
	}
	wantStatus(t, api.get(t, "/v1/pets?id=61&status=sold"), 200, "")
	c.job(s, "add a pet", 3, func() {
		c.click(".heading .primary", "#name")
		c.types("Newcomer")
		c.do("go on", chromedp.KeyEvent(kb.Tab))
		c.types("guinea pigs")
		c.click("main form .primary", ".notice.done")
		if got := c.text(".facts"); !strings.Contains(got, "Guinea pigs") {
			t.Errorf("the new pet is described as %q, want its category", got)
		}
	})
	c.job(s, "see what changed today", 1, func() {
		c.click("#today", ".lead time")
		c.checkPage("today")
		if got := c.text(".feed"); !strings.Contains(got, "Newcomer") || !strings.Contains(got, "clerk") {
			t.Errorf("today shows %q, want the new pet and who added it", got)
		}
		zone := time.FixedZone("Tokyo", 9*3600)
		now := time.Now().In(zone)
		at, _ := url.Parse(eval[string](c.tab, `location.href`))
		since, err := time.Parse(time.RFC3339, at.Query().Get("since"))
		if err != nil || now.Sub(since) > 24*time.Hour || since.In(zone).Format("15:04:05") != "00:00:00" {
			t.Errorf("today begins at %q (%v), want midnight in the reader's zone", at.Query().Get("since"), err)
		}
		if got := c.text(".lead time"); !strings.Contains(got, "00:00:00") {
			t.Errorf("the page says that the day began at %q, want the reader's time", got)
		}
	})
	c.suggestions(s)
	c.wantClean()
}

// suggestions: the box shows the first matches as one types, for keyboard, mouse and
// screen reader, with a bounded number of requests.
func (c *clerk) suggestions(s *server) {
	t := c.t
	t.Helper()
	asked := func() (n int) {
		for _, r := range c.noted(&c.requests) {
			if strings.Contains(r, "/console/find?") {
				n++
			}
		}
		return n
	}
	state := func() string {
		return eval[string](c.tab, `(box => [box.getAttribute("role"), box.getAttribute("aria-expanded"), box.getAttribute("aria-controls"), document.querySelector("#" + (box.getAttribute("aria-activedescendant") || "none") + "[aria-selected=true]")?.textContent.replace(/\s+/g, " ")].join("|"))(document.querySelector("#find"))`)
	}
	c.open(s, "/console", "#latest")
	if got := state(); got != "combobox|false|matches|" {
		t.Errorf("at first, the box is %s, want a closed combobox", got)
	}
	c.types("N")
	c.types("ewc")
	c.do("see a match", visible("#matches li"))
	if got := state(); got != "combobox|true|matches|" {
		t.Errorf("with a match, the box is %s, want it open", got)
	}
	if got := c.text(".find [role=status]"); !strings.HasPrefix(got, "One pet.") {
		t.Errorf("a screen reader is told %q, want the number of matches", got)
	}
	c.checkPage("find")
	c.do("press Escape", chromedp.KeyEvent(kb.Escape))
	if got := state(); got != "combobox|false|matches|" || eval[string](c.tab, `document.querySelector("#find").value`) != "Newc" {
		t.Errorf("after Escape, the box is %s, want it closed with the text", got)
	}
	c.types("o")
	c.do("see it again", visible("#matches li"), chromedp.KeyEvent(kb.ArrowDown))
	if got := state(); got != "combobox|true|matches|Newcomer 62 available" {
		t.Errorf("after the arrow key, the box is %s, want the match to be active", got)
	}
	c.do("press Enter", chromedp.KeyEvent(kb.Enter), visible(".facts"))
	if got := c.text("h1"); got != "Newcomer" {
		t.Errorf("the page is about %q, want the match", got)
	}
	c.do("find another", write("#find", "60"), visible("#matches li"), click("#matches li"), visible(`form[action="/console/pets/60"]`))

	c.open(s, "/console/usage", "#find")
	before := asked()
	for i := range 23 {
		eval[any](c.tab, `window.asked = false; null`)
		c.do("type", write("#find", fmt.Sprint("name ", i)))
		// The box waits less long than this.
		eval[any](c.tab, `setTimeout(() => { window.asked = true }, 300); null`)
		testenv.Eventually(t, "the box has asked", func() bool {
			return eval[bool](c.tab, `window.asked`) && asked() >= before+min(i+1, 20)
		})
	}
	if got := asked() - before; got != 20 {
		t.Errorf("one page made %d requests, want 20", got)
	}
}
