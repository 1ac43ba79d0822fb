//go:build linux

package e2e

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"animalstore/internal/testenv"
)

// TestBrowser_Slow uses the public pages and the console as people do. The tests share a
// browser and take turns, because it burns a processor. Each has its own cookies.
func TestBrowser_Slow(t *testing.T) {
	t.Parallel()
	browser := startBrowser(t)
	for name, test := range map[string]func(*testing.T, context.Context){
		"pages": testPages, "reference": testReference, "console": testConsole, "clerk": testClerk,
		"files": testFiles, "photos": testPhotos, "tabs": testTabs, "outage": testOutage,
	} {
		t.Run(name, func(t *testing.T) {
			profile, closeTabs := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
			t.Cleanup(closeTabs)
			if err := chromedp.Do(profile); err != nil {
				t.Fatal(err)
			}
			test(t, profile)
		})
	}
}

// startBrowser runs a Chromium that can reach only this machine, and ends it with the
// test.
func startBrowser(t *testing.T) context.Context {
	t.Helper()
	testenv.Slow(t)
	var program string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		testenv.Missing(t, "chromium is not installed: make check installs it as root with apt-get")
	}
	opts := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(program),
		chromedp.DisableGPU,
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("no-proxy-server", true),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
	)
	if os.Getuid() == 0 {
		opts = append(opts, chromedp.NoSandbox)
	}
	allocator, free := chromedp.NewExecAllocator(context.Background(), opts...)
	browser, _ := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		if err := chromedp.Cancel(browser); err != nil {
			t.Errorf("end the browser: %v", err)
		}
		free()
	})
	if err := chromedp.Do(browser); err != nil {
		t.Fatalf("start %s: %v", program, err)
	}
	return browser
}

// tab is a page in a browser that records its requests and console messages.
type tab struct {
	t   *testing.T
	ctx context.Context
	own string // the host whose page it shows

	mu       sync.Mutex
	requests []string
	console  []string
}

func openTab(t *testing.T, browser context.Context, s *server) *tab {
	t.Helper()
	ctx, closeTab := chromedp.NewContext(browser)
	t.Cleanup(closeTab)
	p := &tab{t: t, ctx: ctx, own: strings.TrimPrefix(s.url, "http://")}
	requests, console := chromedp.Events(ctx, network.RequestWillBeSent), chromedp.Console(ctx)
	go func() {
		for e, err := range requests {
			if err != nil {
				return
			}
			p.note(&p.requests, e.Request.URL)
		}
	}()
	go func() {
		for m, err := range console {
			if err != nil {
				return
			}
			p.note(&p.console, fmt.Sprint(m))
		}
	}()
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *tab) note(list *[]string, what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*list = append(*list, what)
}

func (p *tab) noted(list *[]string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(*list)
}

// do takes steps in the page.
func (p *tab) do(what string, steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, testenv.Deadline)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.t.Fatalf("%s: %v\nthe console says %q", what, err, p.noted(&p.console))
	}
}

// eval runs JavaScript in a page.
func eval[T any](p *tab, expression string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, testenv.Deadline)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// disableScript turns JavaScript off, except that of the test.
func (p *tab) disableScript() {
	p.t.Helper()
	p.do("turn JavaScript off", send(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}))
}

// text returns the visible text of an element, once it exists.
func (p *tab) text(selector string) string {
	p.t.Helper()
	// In one step, because a page that is still loading may replace its elements.
	p.do("find "+selector, visible(selector))
	return eval[string](p, fmt.Sprintf("document.querySelector(%q).innerText", selector))
}

// send sends a command of the browser's protocol.
func send[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, c, params)
		return err
	})
}

func visible(selector string) chromedp.Action[chromedp.Void] {
	return chromedp.WaitVisible(chromedp.CSS(selector))
}

// script runs JavaScript as a step.
func script(format string, args ...any) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := chromedp.Evaluate[any](fmt.Sprintf(format, args...))(ctx, target)
		return err
	})
}

// click presses a button by its selector. The page may move the button at any moment,
// so clicking at its position could miss it.
func click(selector string) chromedp.Action[chromedp.Void] {
	return chromedp.Steps(visible(selector), script(`document.querySelector(%q).click()`, selector))
}

// write types a text into a field, replacing its content.
func write(selector, text string) chromedp.Action[chromedp.Void] {
	return chromedp.Steps(visible(selector), script(`document.querySelector(%[1]q).focus(); document.querySelector(%[1]q).select()`, selector),
		send(input.InsertText, input.InsertTextParams{Text: text}))
}

// wantClean fails the test if the page logged anything, which includes violations of
// its content security policy, or sent a request to any host but its own.
func (p *tab) wantClean() {
	p.t.Helper()
	// Once the last message and the last request are recorded, so are all earlier ones.
	eval[any](p, `console.log("the last word"); new Image().src = document.querySelector("link[rel=icon]").href + "?the-last-request"; null`)
	testenv.Eventually(p.t, "the browser has reported everything", func() bool {
		return slices.ContainsFunc(p.noted(&p.requests), func(s string) bool { return strings.HasSuffix(s, "the-last-request") }) &&
			slices.ContainsFunc(p.noted(&p.console), func(s string) bool { return strings.Contains(s, "the last word") })
	})
	for _, m := range p.noted(&p.console) {
		if !strings.Contains(m, "the last word") {
			p.t.Errorf("the console says %q, want nothing", m)
		}
	}
	for _, r := range p.noted(&p.requests) {
		if u, err := url.Parse(r); err != nil || u.Host != p.own && u.Scheme != "data" {
			p.t.Errorf("the page requests %.100s, want only requests to %s", r, p.own)
		}
	}
}

// lookAs shows a page on a device of this size and colour scheme.
func (p *tab) lookAs(width, height int64, scheme string) {
	p.t.Helper()
	p.do("look as", chromedp.EmulateViewport(width, height), send(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}},
	}))
	wide := eval[[]string](p, `(() => {
		const page = document.documentElement;
		if (page.scrollWidth <= page.clientWidth) return [];
		const scrolls = e => e !== document.body && (getComputedStyle(e).overflowX !== "visible" || scrolls(e.parentElement));
		return [...document.querySelectorAll("body *")]
			.filter(e => e.getBoundingClientRect().right > page.clientWidth && !scrolls(e.parentElement))
			.map(e => e.outerHTML.slice(0, 100))
			.concat(page.scrollWidth + " pixels");
	})()`)
	if len(wide) > 0 {
		p.t.Errorf("at %d pixels the page is too wide: %q", width, wide)
	}
}

// wantFits checks a page on a small phone and on a desk, and in a soak on more devices.
func (p *tab) wantFits() {
	p.t.Helper()
	if testenv.Soak {
		p.lookAs(390, 844, "light")
		p.lookAs(1600, 1000, "light")
	}
	p.lookAs(320, 640, "dark")
	p.lookAs(1280, 900, "light")
}

// seeded starts a server on a store with 60 pets.
func seeded(t *testing.T, opts ...option) *server {
	t.Helper()
	database := newDatabase(t)
	seed(t, database, 60)
	return start(t, append(opts, onDatabase(database))...)
}

func (p *tab) open(s *server, path, selector string) {
	p.t.Helper()
	p.do("open "+path, chromedp.Navigate(s.url+path), visible(selector))
}

// signIn opens the console with a key.
func (p *tab) signIn(s *server, key string) {
	p.t.Helper()
	p.open(s, "/console/sign-in", "#key")
	p.do("sign in", write("#key", key), click("form .primary"), visible("#latest"))
}

// copied presses a copy button and returns the clipboard's content. It replaces the
// clipboard of this page, because all tabs share the real one.
func (p *tab) copied(button string) string {
	p.t.Helper()
	eval[any](p, `navigator.clipboard.writeText = async text => { window.copied = text }; null`)
	p.do("copy", click(button))
	testenv.Eventually(p.t, "the button says so", func() bool {
		return eval[string](p, fmt.Sprintf(`document.querySelector(%q).textContent`, button)) == "Copied"
	})
	return eval[string](p, `window.copied`)
}
