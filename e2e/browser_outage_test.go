//go:build linux

package e2e

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// testOutage: while the server is gone, a page stays with what was typed, and its form
// is sent once the server is back. Links don't wait for a check.
func testOutage(t *testing.T, browser context.Context) {
	s := start(t)
	key := s.ownerKey()
	address := s.url[len("http://"):]
	p := openTab(t, browser, s)
	p.do("show the menu", chromedp.EmulateViewport(1280, 900))
	p.signIn(s, key)
	p.open(s, "/console/keys/new", "#plan")
	if !eval[bool](p, `document.querySelector("#limits").disabled && !document.querySelector("#perMinute").checkVisibility()`) {
		t.Error("a limit can be typed for a free key")
	}
	p.do("choose enterprise", chromedp.SetValue(chromedp.CSS("#plan"), "enterprise"))
	eval[any](p, `document.querySelector("#plan").dispatchEvent(new Event("change")); null`)
	p.do("type the limits", write("#name", "Zoë"), write("#perMinute", "50"), write("#perDay", "5000"))

	s.kill()
	p.do("send the form", click("main form .primary"), visible(".notice.wrong:focus"))
	if got := eval[[]string](p, `[document.querySelector("main form .primary").textContent, document.querySelector("#name").value]`); got[0] != "Saving…" || got[1] != "Zoë" {
		t.Errorf("while the server is gone, the button and the field say %q", got)
	}
	p.do("send it again", click("main form .primary"))
	start(t, onDatabase(s.database), onAddress(address))
	p.do("the key is created", visible("#secret"))

	before := len(p.noted(&p.requests))
	p.do("follow a link", click(`.rail [href="/console/keys"]`), visible("table.rows"))
	if got := p.noted(&p.requests)[before:]; slices.ContainsFunc(got, func(r string) bool { return strings.HasSuffix(r, "/livez") }) {
		t.Errorf("a link waits for %q, want only the page", got)
	}
	if n := eval[float64](p, `[...document.querySelectorAll("td.name")].filter(e => e.textContent === "Zoë").length`); n != 1 {
		t.Errorf("got %v keys, want one", n)
	}
}
