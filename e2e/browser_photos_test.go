//go:build linux

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"animalstore"
	"animalstore/internal/photo/phototest"
	"animalstore/internal/testenv"
)

// TestConsolePhotos uses photos in the console as people do, with and without JavaScript.
func TestConsolePhotos(t *testing.T) {
	t.Parallel()
	browser := startBrowser(t)
	database := newDatabase(t)
	if r := run(t, "seed", "--pets", "60", "--photos", "30", "--database", "sqlite:"+database); r.code != 0 {
		t.Fatalf("seed: exit code %d\n%s", r.code, r.stderr)
	}
	s := start(t, onDatabase(database), withArgs("--access-log"))
	p := openTab(t, browser, s)
	p.lookAs(1280, 900, "light")
	p.do("sign in", chromedp.Navigate(s.url+"/console/sign-in"), visible("#key"), write("#key", s.ownerKey()), click("form .primary"), visible("#latest"))

	dir := t.TempDir()
	files := []string{filepath.Join(dir, "first.jpg"), filepath.Join(dir, "second.png"), filepath.Join(dir, "page.jpg")}
	for i, content := range [][]byte{phototest.JPEG(phototest.Drawing(900, 600)), phototest.PNG(phototest.Drawing(300, 700)), []byte("<!doctype html><script>alert(1)</script>")} {
		if err := os.WriteFile(files[i], content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p.useGallery(s, files)
	p.dropPhotos(s)
	p.followPhotos(s)
	p.wantLightList(s, "drawn photos")
	p.addNoise(s)
	p.wantLightList(s, "noise")
	p.open(s, "/console/orders", ".face")
	p.checkPage("orders-photos")
	clean := openTab(t, browser, s) // the others have seen refusals, which browsers report
	clean.open(s, "/console/pets", "img.face")
	clean.open(s, "/console/pets/6", ".gallery img")
	clean.wantClean()
	photosWithoutScript(t, browser, s, files)
}

func choose(files ...string) chromedp.Action[chromedp.Void] {
	return chromedp.SetUploadFiles(chromedp.CSS("#files"), files)
}

// useGallery adds photos by choosing files, and removes one.
func (p *tab) useGallery(s *server, files []string) {
	p.t.Helper()
	p.open(s, "/console/pets/5", "#files")
	p.checkPage("photos-none")
	p.do("add one", choose(files[0]), click(".drop button"), visible(".notice.done"), visible(".gallery img"))
	p.checkPage("photos-1")
	p.do("add several", choose(files...), click(".drop button"), visible(".notice.wrong li"))
	if got := p.text(".notice.wrong"); !strings.Contains(got, "2 photos were added. One file wasn’t added.") || !strings.Contains(got, "page.jpg: ") {
		p.t.Errorf("the page says %q, want the file that isn't a picture", got)
	}
	p.checkPage("photos-refused")
	p.wantAlts("Photo 1 of ", "Photo 2 of ", "Photo 3 of ")
	p.do("remove the second", click(".gallery li:nth-child(2) summary"), visible(".gallery li:nth-child(2) form"))
	p.checkPage("photos-remove")
	p.do("confirm", click(".gallery li:nth-child(2) form button"), visible(".notice.done"))
	p.wantAlts("Photo 1 of ", "Photo 2 of ")
	for range 8 {
		p.addPhoto(s, 5, phototest.JPEG(phototest.Drawing(640, 480)))
	}
	p.open(s, "/console/pets/5", ".gallery li:nth-child(10)")
	p.checkPage("photos-10")
	if eval[bool](p, `!!document.querySelector("#files")`) {
		p.t.Error("a pet with ten photos has a form for more")
	}
	p.do("open the image", click(".gallery a"), visible("img"))
	if got := eval[string](p, `document.contentType + " " + document.querySelector("img").naturalWidth`); got != "image/jpeg 900" {
		p.t.Errorf("the thumbnail leads to %s, want the whole image", got)
	}
}

// wantAlts fails the test unless the gallery has images whose texts begin with these.
func (p *tab) wantAlts(want ...string) {
	p.t.Helper()
	testenv.Eventually(p.t, "the images are loaded", func() bool {
		return eval[bool](p, `[...document.querySelectorAll(".gallery img")].every(i => i.complete && i.naturalWidth > 0)`)
	})
	got := eval[[]string](p, `[...document.querySelectorAll(".gallery img")].map(i => i.alt)`)
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

func (p *tab) addPhoto(s *server, pet int64, picture []byte) {
	p.t.Helper()
	if _, err := uploader(p.t, s, s.ownerKey(), 3).AddPhoto(p.t.Context(), pet, bytes.NewReader(picture)); err != nil {
		p.t.Fatal(err)
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
		window.drag = name => document.querySelector(".photos h2").dispatchEvent(new DragEvent(name, { dataTransfer: files, bubbles: true, cancelable: true }));
	})(); null`)
	testenv.Eventually(p.t, "the files are drawn", func() bool { return eval[bool](p, `window.files !== null`) })
	if !eval[bool](p, `drag("dragover"), document.querySelector(".drop.over") !== null`) {
		p.t.Error("nothing shows that files can be dropped")
	}
	if got := eval[string](p, `(form => {
		const { max } = form.dataset;
		form.dataset.max = 10;
		drag("drop");
		form.dataset.max = max;
		return document.querySelector("#files").validationMessage;
	})(document.querySelector(".drop"))`); !strings.Contains(got, "add fewer at once") {
		p.t.Errorf("too large files are refused with %q, want the reason", got)
	}
	eval[any](p, `drag("drop"); null`)
	p.do("see them", visible(".notice.done"), visible(".gallery li:nth-child(3)"))
	p.wantAlts("Photo 1 of ", "Photo 2 of ", "Photo 3 of ")
}

// followPhotos sees the events of photos arrive.
func (p *tab) followPhotos(s *server) {
	p.t.Helper()
	p.open(s, "/console/events?type=photo.*", ".following")
	p.addPhoto(s, 7, phototest.JPEG(phototest.Drawing(640, 480)))
	p.do("see it", visible(".feed .new"))
	if got := p.text(".feed .new"); !strings.Contains(got, "photo.created") || !strings.Contains(got, "pet 7, 640 × 480") {
		p.t.Errorf("the new photo is shown as %q, want its pet and size", got)
	}
	p.checkPage("events-photos")
	path := eval[string](p, `document.querySelector(".feed .new td:nth-child(3) a").pathname`)
	id := regexp.MustCompile(`[0-9]+`).FindString(path)
	wantStatus(p.t, newClient(p.t, s, s.ownerKey()).do(p.t, "DELETE", "/v1/photos/"+id, ""), 204, "")
	p.do("see it go", visible(".feed .new ~ .new"))
	if eval[bool](p, fmt.Sprintf(`[...document.querySelectorAll(".feed a")].some(a => a.pathname === %q)`, path)) {
		p.t.Error("the feed leads to a photo that was removed")
	}
}

// addNoise gives every pet on the first page a photo that compresses badly.
func (p *tab) addNoise(s *server) {
	p.t.Helper()
	c := uploader(p.t, s, s.ownerKey(), 3)
	for i := range 20 {
		pet, err := c.CreatePet(p.t.Context(), animalstore.NewPet{Name: fmt.Sprint("Noisy ", i), CategoryID: 1})
		if err != nil {
			p.t.Fatal(err)
		}
		p.addPhoto(s, pet.ID, phototest.JPEG(pureNoise(320, 320, uint64(i))))
	}
}

// pureNoise is a picture that can't be compressed.
func pureNoise(width, height int, seed uint64) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	random := rand.New(rand.NewPCG(seed, 0))
	for i := range img.Pix {
		if img.Pix[i] = byte(random.Uint32()); i%4 == 3 {
			img.Pix[i] = 255
		}
	}
	return img
}

var served = regexp.MustCompile(`msg=request .*path=(/\S*) status=200 bytes=([0-9]+)`)

// wantLightList: with everything it loads, the list of pets takes less than 600 KB, and the
// second view loads no image again.
func (p *tab) wantLightList(s *server, what string) {
	p.t.Helper()
	p.do("leave", chromedp.Navigate("about:blank"))
	view := func() (images, total int) {
		before := len(s.stderr.String())
		p.lookAs(1280, 4000, "light") // all of it is in view
		p.open(s, "/console/pets", ".face")
		testenv.Eventually(p.t, "all images are loaded", func() bool {
			return eval[int](p, `[...document.querySelectorAll("img.face")].filter(i => i.complete && i.naturalWidth > 0).length`) == 20
		})
		last := fmt.Sprint("last-", before)
		newClient(p.t, s, "").do(p.t, "GET", "/livez", "", "X-Request-Id", last)
		testenv.Eventually(p.t, "all requests are in the log", func() bool { return strings.Contains(s.stderr.String(), last) })
		for _, m := range served.FindAllStringSubmatch(s.stderr.String()[before:], -1) {
			if strings.HasPrefix(m[1], "/v1/") { // the console's own
				continue
			}
			bytes, _ := strconv.Atoi(m[2]) // it has digits only
			total += bytes
			if strings.HasPrefix(m[1], "/console/photos/") {
				images++
			}
		}
		return images, total
	}
	images, total := view()
	if images != 20 {
		p.t.Errorf("%s: the first view loads %d images, want 20", what, images)
	}
	if total > 600_000 {
		p.t.Errorf("%s: the first view takes %d bytes, want at most 600 KB", what, total)
	}
	p.checkPage("pets-" + strings.ReplaceAll(what, " ", "-"))
	images, again := view()
	if images > 0 {
		p.t.Errorf("%s: the second view loads %d images again, want none", what, images)
	}
	p.t.Logf("%s: %d bytes, then %d", what, total, again)
}

// photosWithoutScript adds and removes photos without JavaScript.
func photosWithoutScript(t *testing.T, browser context.Context, s *server, files []string) {
	t.Helper()
	p := openTab(t, browser, s)
	p.disableScript()
	p.open(s, "/console/pets/8", "#files")
	p.do("add one", choose(files[0]), click(".drop button"), visible(".notice.done"))
	p.do("add several", choose(files...), click(".drop button"), visible(".notice.wrong li"))
	p.wantAlts("Photo 1 of ", "Photo 2 of ", "Photo 3 of ")
	p.do("remove one", click(".gallery summary"), click(".gallery form button"), visible(".notice.done"))
	p.wantAlts("Photo 1 of ", "Photo 2 of ")
}
