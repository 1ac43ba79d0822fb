//go:build linux

package e2e

import (
	"context"
	"fmt"
	"testing"

	"animalstore/internal/testenv"
)

// testTabs: all tabs of a browser share one event stream, because over HTTP/1.1
// a browser has only six connections to a host. Hidden tabs use none.
func testTabs(t *testing.T, browser context.Context) {
	s := start(t, withOps())
	var tabs []*tab
	for i := range 3 {
		p := openTab(t, browser, s)
		if tabs = append(tabs, p); i == 0 {
			p.signIn(s, s.ownerKey())
		}
		path := "/console/events"
		if i%2 == 1 {
			path += "?type=pet.*"
		}
		p.open(s, path, ".following")
	}
	streams := func(want float64) {
		t.Helper()
		testenv.Eventually(t, fmt.Sprint(want, " streams"), func() bool { return s.metric("animalstore_event_streams") == want })
	}
	streams(1)
	add := func(name string) {
		t.Helper()
		wantStatus(t, newClient(t, s, s.ownerKey()).do(t, "POST", "/v1/pets", `{"name":"`+name+`","categoryId":3}`), 201, "")
	}
	shows := func(p *tab, name string) {
		t.Helper()
		testenv.Eventually(t, "the tab shows "+name, func() bool {
			return eval[bool](p, `[...document.querySelectorAll(".feed .new")].some(row => row.textContent.includes("`+name+`"))`)
		})
	}
	add("Rex")
	for _, p := range tabs {
		shows(p, "Rex")
	}
	show := func(p *tab, state string) {
		t.Helper()
		eval[any](p, `Object.defineProperty(document, "visibilityState", {value: "`+state+`", configurable: true}); document.dispatchEvent(new Event("visibilitychange")); null`)
	}
	for _, p := range tabs {
		show(p, "hidden")
	}
	streams(0)
	add("Tom")
	show(tabs[1], "visible")
	shows(tabs[1], "Tom")
	streams(1)
	for i, p := range tabs {
		if shown := eval[bool](p, `document.querySelector(".feed").textContent.includes("Tom")`); shown != (i == 1) {
			t.Errorf("tab %d shows what happened while it was hidden: %t, want %t", i, shown, i == 1)
		}
		p.wantClean()
	}
}
