//go:build linux

package e2e

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"animalstore/internal/photo/phototest"
	"animalstore/internal/testenv"
)

// testPhotos uses photos in the console as people do.
func testPhotos(t *testing.T, browser context.Context) {
	s := seeded(t)
	p := openTab(t, browser, s)
	p.signIn(s, s.ownerKey())

	file := mustWrite(t, filepath.Join(t.TempDir(), "page.jpg"), "<!doctype html><script>alert(1)</script>", 0o644)
	p.open(s, "/console/pets/5", "#files")
	p.do("add a file that isn't a picture", chromedp.SetUploadFiles(chromedp.CSS("#files"), []string{file}), click(".drop button"), visible(".uploads .wrong:not(:empty)"), visible(".uploads button"))
	p.checkPage("photos-refused")
	p.dropPhotos(s)
	p.retryPhoto(s)
	clean := openTab(t, browser, s) // the other has seen refusals, which browsers report
	clean.open(s, "/console/pets/6", ".pictures img")
	clean.wantClean()
}

// wantAlts fails the test unless the gallery has images whose texts begin with these.
func (p *tab) wantAlts(want ...string) {
	p.t.Helper()
	testenv.Eventually(p.t, "the images are loaded", func() bool {
		return eval[bool](p, `[...document.querySelectorAll(".pictures img")].every(i => i.complete && i.naturalWidth > 0)`)
	})
	got := eval[[]string](p, `[...document.querySelectorAll(".pictures img")].map(i => i.alt)`)
	if len(got) != len(want) {
		p.t.Errorf("got the photos %q, want %q", got, want)
		return
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			p.t.Errorf("got the photos %q, want %q", got, want)
		}
	}
}

// dropPhotos drops files on the gallery.
func (p *tab) dropPhotos(s *server) {
	p.t.Helper()
	p.open(s, "/console/pets/6", "#files")
	eval[any](p, `window.files = null; (async () => {
		const canvas = Object.assign(document.createElement("canvas"), { width: 400, height: 300 });
		canvas.getContext("2d").fillRect(10, 10, 200, 200);
		const files = new DataTransfer();
		for (const type of ["image/jpeg", "image/png", "image/webp"]) {
			const blob = await new Promise(done => canvas.toBlob(done, type));
			files.items.add(new File([blob], "drawn." + type.slice(6), { type }));
		}
		window.files = files;
		window.drag = name => document.querySelector(".drop label").dispatchEvent(new DragEvent(name, { dataTransfer: files, bubbles: true, cancelable: true }));
	})(); null`)
	testenv.Eventually(p.t, "the files are drawn", func() bool { return eval[bool](p, `window.files !== null`) })
	if !eval[bool](p, `drag("dragover"), document.querySelector(".drop.over") !== null`) {
		p.t.Error("nothing shows that files can be dropped")
	}
	eval[any](p, `drag("drop"); null`)
	p.do("see them", visible(".notice.done"), visible(".pictures a:nth-child(3)"))
	p.wantAlts("Photo 1 of ", "Photo 2 of ", "Photo 3 of ")
}

// retryPhoto adds a photo at the second attempt, after the connection was lost.
func (p *tab) retryPhoto(s *server) {
	p.t.Helper()
	file := mustWrite(p.t, filepath.Join(p.t.TempDir(), "kept.jpg"), string(phototest.JPEG(phototest.Drawing(320, 240))), 0o644)
	loseConnection := func(lost bool) {
		p.t.Helper()
		uploads := &network.BlockPattern{URLPattern: s.url + "/console/pets/8/photos", Block: lost}
		p.do("lose the connection", send(network.SetBlockedURLs, network.SetBlockedURLsParams{URLPatterns: []*network.BlockPattern{uploads}}))
	}
	p.open(s, "/console/pets/8", "#files")
	loseConnection(true)
	p.do("add a photo", chromedp.SetUploadFiles(chromedp.CSS("#files"), []string{file}), click(".drop button"), visible(".uploads .wrong:not(:empty)"))
	p.checkPage("photos-retry")
	loseConnection(false)
	p.do("retry", click(".uploads button"), visible(".pictures img"))
	p.wantAlts("Photo 1 of ")
}
