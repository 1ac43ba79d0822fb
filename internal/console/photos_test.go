package console_test

import (
	"fmt"
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"animalstore"
	"animalstore/internal/console"
)

var thumbnails = regexp.MustCompile(`<img src="(/console/photos/[0-9]+/(?:image|thumbnail)[^"]*)" alt="([^"]*)"`)

// gallery returns the alternative texts of the photos on the page of a pet.
func (b *browser) gallery(pet int64) (alts []string) {
	b.s.T.Helper()
	for _, m := range thumbnails.FindAllStringSubmatch(b.get(fmt.Sprint("/console/pets/", pet)).body, -1) {
		if p := b.get(html.UnescapeString(m[1])); p.status != http.StatusOK {
			b.s.T.Errorf("%s: got %d, want an image", m[1], p.status)
		}
		alts = append(alts, html.UnescapeString(m[2]))
	}
	return alts
}

// TestGallery: photos are added and removed with forms alone, and shown by age.
func TestGallery(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn(everything)
	pet := s.Pet(`"Rex" & Co`)
	path := fmt.Sprint("/console/pets/", pet.ID)
	b.upload(pet.ID, jpegFile).wantMoved(t, "one file", path).wantDone(t, "photo-added")
	b.upload(pet.ID, pngFile.as("a", "application/octet-stream"), webpFile.as("b", ""), jpegFile).wantMoved(t, "several files", path).wantDone(t, "photos-added")
	if got, want := fmt.Sprint(b.gallery(pet.ID)), `[Photo 1 of "Rex" & Co Photo 2 of "Rex" & Co Photo 3 of "Rex" & Co Photo 4 of "Rex" & Co]`; got != want {
		t.Errorf("got the photos %s, want %s", got, want)
	}
	page := b.get(path)
	edit := b.get(path + "/edit")
	links := regexp.MustCompile(`<a href="(/console/photos/([0-9]+)/image[^"]*)">`).FindAllStringSubmatch(page.body, -1)
	if got := fmt.Sprint(links[0][2], links[1][2], links[2][2], links[3][2]); got != "1234" {
		t.Errorf("got the photos %s, want the oldest first", got)
	}
	remove := path + "/photos/2/remove"
	form := edit.form(t, remove)
	b.post(remove, form).wantMoved(t, "remove", path).wantDone(t, "photo-removed")
	b.post(remove, form).wantMoved(t, "remove again", path).wantDone(t, "photo-removed")
	if got := b.gallery(pet.ID); len(got) != 3 {
		t.Errorf("got the photos %q, want 3", got)
	}
	b.get(html.UnescapeString(links[1][1])).want(t, "a removed photo", http.StatusNotFound)
	for range 7 {
		s.Photo(pet.ID)
	}
	full := b.get(path)
	full.want(t, "full", http.StatusOK, "Photo 10 of")
	if strings.Contains(full.body, `type="file"`) {
		t.Error("a pet with ten photos still has the form")
	}
	for what, p := range map[string]shown{
		"nothing chosen": b.send(path+"/photos", "", file{"", "application/octet-stream", nil}),
		"no file field":  b.send(path+"/photos", ""),
	} {
		p.want(t, what, http.StatusBadRequest)
	}
	b.post(path+"/photos", nil).want(t, "another kind of form", http.StatusBadRequest)
	b.send("/console/pets/99/photos", "", jpegFile).want(t, "no pet", http.StatusNotFound)
}

// TestImages: signed-in people see images as the API sends them, free of charge.
func TestImages(t *testing.T) {
	t.Parallel()
	s := start(t)
	pet := s.Pet("Rex")
	added := s.Photo(pet.ID)
	secret, _ := s.Key("shop", animalstore.Read, 5)
	b := s.browser()
	b.signIn(secret)
	before := s.left(secret)
	for _, kind := range []string{"image", "thumbnail"} {
		path := fmt.Sprint("/console/photos/", added.ID, "/", kind)
		req, err := http.NewRequest(http.MethodGet, s.URL+strings.Replace(path, "/console", "/v1", 1), nil)
		if err != nil {
			t.Fatal(err)
		}
		owner, _ := s.Key("owner", everything, 1<<30)
		req.Header.Set("Authorization", "Bearer "+owner)
		want := s.browser().roundTrip(req)
		got := b.get(path)
		got.want(t, path, http.StatusOK)
		if got.body != want.body {
			t.Errorf("%s: got other bytes than from the API", path)
		}
		for _, name := range []string{"Content-Type", "Content-Length", "Cache-Control", "Etag", "Content-Disposition", "X-Content-Type-Options", "Content-Security-Policy"} {
			if got, want := got.header.Values(name), want.header.Values(name); fmt.Sprint(got) != fmt.Sprint(want) || len(got) != 1 {
				t.Errorf("%s: got %s %q, want %q", path, name, got, want)
			}
		}
		b.header.Set("If-None-Match", want.header.Get("ETag"))
		if got := b.get(path); got.status != http.StatusNotModified || got.body != "" {
			t.Errorf("%s: got %d, want 304", path, got.status)
		}
		b.header.Del("If-None-Match")
		b.get(strings.Replace(path, "/1/", "/99/", 1)).want(t, "no photo", http.StatusNotFound)
		if p := s.browser().get(path); p.status != http.StatusSeeOther {
			t.Errorf("signed out: got %d, want a redirect to sign in", p.status)
		}
		s.signedIn(animalstore.Write).get(path).want(t, "without read", http.StatusForbidden)
	}
	if got := before - s.left(secret) - 1; got != 0 {
		t.Errorf("images are charged %d requests, want none", got)
	}
	for s.left(secret) > 0 {
	}
	b.get("/console/pets").want(t, "over the limit", http.StatusTooManyRequests)
	b.get(fmt.Sprint("/console/photos/", added.ID, "/thumbnail")).want(t, "over the limit", http.StatusOK)
}

// TestFaces: lists show the oldest photo of each pet, or a placeholder, for at most three
// calls.
func TestFaces(t *testing.T) {
	t.Parallel()
	s := start(t)
	secret, _ := s.Key("shop", everything, 1<<30)
	b := s.browser()
	b.signIn(secret)
	for i := range 3 {
		pet := s.Pet(fmt.Sprint("Rex ", i))
		for range animalstore.MaxPhotos {
			s.Photo(pet.ID)
		}
		s.order(pet.ID)
	}
	faces := regexp.MustCompile(`<img class="face" src="/console/photos/([0-9]+)/thumbnail\?at=[0-9]+" alt="" width="48" height="48" loading="lazy"`)
	for _, path := range []string{"/console/pets", "/console/orders"} {
		before := s.left(secret)
		p := b.get(path)
		if got := before - s.left(secret) - 1; got > 3 {
			t.Errorf("%s: got %d requests charged, want at most 3", path, got)
		}
		var got []string
		for _, m := range faces.FindAllStringSubmatch(p.body, -1) {
			got = append(got, m[1])
		}
		if want := map[string]string{"/console/pets": "21 11 1", "/console/orders": "1 11 21"}[path]; strings.Join(got, " ") != want {
			t.Errorf("%s: got the photos %s, want %s", path, got, want)
		}
	}
	s.Pet("\u202E élan")
	b.get("/console/pets").want(t, "a placeholder", http.StatusOK, `aria-hidden="true"><bdi>É</bdi></span>`)
}

// TestInitials: a placeholder shows the first character of a name as people see it.
func TestInitials(t *testing.T) {
	for name, want := range map[string]string{
		"Rex": "R", "rex": "R", " rex": "R", "élan": "É", "e\u0301lan": "E\u0301", "\u202Eرکس": "ر", "שרה": "ש", "“Rex”": "R", "(7 of 9)": "7",
		"👩🏽‍🚀 Ada": "👩🏽‍🚀", "🇨🇭 Heidi": "🇨🇭", "👨‍👩‍👧‍👦": "👨‍👩‍👧‍👦", "한글": "한", "नमस्ते": "न", "!!!": "!", "\u200b\u200b": "", "\u0301Rex": "R",
		"Z" + strings.Repeat("\u0301", 1000): "Z" + strings.Repeat("\u0301", 11), "\xff\xfeRex": "�",
	} {
		if got := console.Initial(name); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}
