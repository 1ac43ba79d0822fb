//go:build linux

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"animalstore"
	"animalstore/internal/db/transfer/s3/s3test"
	"animalstore/internal/photo/phototest"
	"animalstore/internal/testenv"
)

// pagesWanted are all pages that links lead to. Of those about a pet, an order and so on,
// one is visited.
var pagesWanted = strings.Fields(`/ /docs /docs/guides /docs/search
	/console /console/categories /console/categories/N /console/events /console/failures
	/console/keys /console/keys/N /console/keys/new /console/orders /console/orders/N
	/console/pets /console/pets/N /console/pets/N/edit /console/pets/import /console/pets/new
	/console/system /console/usage /console/webhooks /console/webhooks/N /console/webhooks/N/deliveries/N`)

// lists are the lists whose first row is in view on a phone.
var lists = strings.Fields(`/console/categories /console/events /console/failures
	/console/keys /console/orders /console/pets /console/webhooks`)

var (
	idInPath = regexp.MustCompile(`/[0-9]+`)
	// notPages are images, downloads and documents for programs.
	notPages = regexp.MustCompile(`^/console/photos/|/export$|^/openapi|^/(livez|readyz)$`)
)

// testPages follows the links from the overview to every page of the console and of
// the docs. Each fits on every device, and axe-core finds nothing: see checkPage.
func testPages(t *testing.T, browser context.Context) {
	s, order := startFurnished(t)
	p := openTab(t, browser, s)
	p.signIn(s, s.ownerKey())
	visited := map[string]bool{}
	links := []string{fmt.Sprint("/console/orders/", order), "/docs/search?find=order", "/console/pets?find=e"} // forms lead to the searches
	for ; len(links) > 0; links = links[1:] {
		path, _, _ := strings.Cut(links[0], "?")
		pattern := idInPath.ReplaceAllString(path, "/N")
		if visited[pattern] || notPages.MatchString(path) {
			continue
		}
		visited[pattern] = true
		p.open(s, links[0], "h1")
		links = append(links, eval[[]string](p, `[...document.links].filter(a => a.origin === location.origin).map(a => a.pathname + a.search)`)...)
		name := strings.Trim(strings.ReplaceAll(pattern, "/", "-"), "-")
		p.checkPage("page-" + name)
		p.lookAs(390, 844, "light")
		if !eval[bool](p, `(row => {
			if (!row) return true;
			const { right, bottom } = row.getBoundingClientRect();
			return bottom > innerHeight || document.elementFromPoint(right - 5, bottom - 4).closest("a") === row.querySelector(".whole");
		})(document.querySelector("tbody tr:has(.whole)"))`) {
			t.Errorf("%s: a click in the corner of a row doesn't open it", path)
		}
		if slices.Contains(lists, pattern) {
			if top := eval[float64](p, `document.querySelector("tbody tr").getBoundingClientRect().top`); top > 200 {
				t.Errorf("%s: on a phone the first row begins at %v pixels, want at most 200", path, top)
			}
		}
		if strings.HasSuffix(pattern, "pets/N") || strings.HasSuffix(pattern, "orders/N") {
			p.printed("print-" + name)
		}
	}
	guides := 0
	for pattern := range visited {
		if strings.HasPrefix(pattern, "/docs/guides/") {
			guides++
		} else if !slices.Contains(pagesWanted, pattern) {
			t.Errorf("the test doesn't know the page %s", pattern)
		}
	}
	for _, pattern := range pagesWanted {
		if !visited[pattern] {
			t.Errorf("no link leads to %s", pattern)
		}
	}
	if guides < 5 {
		t.Errorf("got %d guides, want all", guides)
	}
}

// printed checks what is printed of a page: no forms and no menus.
func (p *tab) printed(name string) {
	p.t.Helper()
	p.do("print", emulateMedia("print"))
	if got := eval[[]string](p, `[...document.querySelectorAll("form, nav, button, summary, .button, input")].filter(e => e.checkVisibility()).map(e => e.outerHTML.slice(0, 80))`); len(got) > 0 {
		p.t.Errorf("on paper there are %q, want no forms and menus", got)
	}
	if heading := p.text("h1"); heading == "" {
		p.t.Error("the paper has no heading")
	}
	p.photograph(name)
	p.do("back to the screen", emulateMedia(""))
}

func emulateMedia(media string) chromedp.Action[chromedp.Void] {
	return send(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: media})
}

// startFurnished starts a server whose store has something for every page to show. The order
// is of a pet with photos.
func startFurnished(t *testing.T) (s *server, order int64) {
	t.Helper()
	bucket := bucketService{url: s3test.Start(t).URL}
	s = seeded(t, withArgs("--webhook-networks", "127.0.0.0/8", "--backup-dir", t.TempDir()), withEnv(append(bucket.env(), "ANIMALSTORE_BACKUP_TO="+bucketPlace)...))
	api := newGoClient(t, s.url, s.ownerKey())
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		_, err := api.AddPhoto(t.Context(), 60, bytes.NewReader(phototest.JPEG(phototest.Drawing(640, 400+40*i))))
		must(err)
	}
	_, err := api.UpdatePet(t.Context(), 60, animalstore.PetPatch{Name: new("Emil the Second")})
	must(err)
	placed, err := api.PlaceOrder(t.Context(), animalstore.NewOrder{PetID: 60, Reference: "W-00060", Note: "Collects on Saturday.\nRing twice."})
	must(err)
	_, err = api.UpdateOrder(t.Context(), placed.ID, animalstore.OrderPatch{Status: new(animalstore.OrderApproved)})
	must(err)
	webhook, err := api.CreateWebhook(t.Context(), animalstore.NewWebhook{URL: "http://127.0.0.1:9/hook", Description: "the shop's own site"})
	must(err)
	_, err = api.PingWebhook(t.Context(), webhook.ID)
	must(err)
	newKey(t, s.database, "--name", "shop floor, till 2", "--permissions", "pets:write,orders:write", "--networks", "203.0.113.0/24")
	c := newClient(t, s, s.ownerKey())
	for i, path := range []string{"/v1/pets/999999", "/v1/pets?limit=many", "/v1/nothing", "/v1/pets?cursor=wrong"} {
		wantStatus(t, c.get(t, path), []int{404, 400, 404, 400}[i], "")
	}
	testenv.Eventually(t, "there are failures, deliveries and a backup elsewhere", func() bool {
		failures := c.get(t, "/v1/failures").body
		deliveries := c.get(t, fmt.Sprintf("/v1/webhooks/%d/deliveries", webhook.ID)).body
		return failures != "[]" && deliveries != "[]" && remoteState(t, s, s.ownerKey()).At != ""
	})
	return s, placed.ID
}
