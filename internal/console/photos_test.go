package console_test

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"regexp"
	"strings"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/console"
	"animalstore/internal/photo/phototest"
	"animalstore/internal/server"
)

// file is a file in a form.
type file struct {
	name, contentType string
	content           []byte
}

// multipartForm is a form with files, as browsers send it.
func multipartForm(once string, files ...file) (contentType string, body []byte) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	w.WriteField("once", once)
	for _, f := range files {
		header := textproto.MIMEHeader{"Content-Disposition": {fmt.Sprintf(`form-data; name="photo"; filename=%q`, f.name)}}
		if f.contentType != "" {
			header.Set("Content-Type", f.contentType)
		}
		part, _ := w.CreatePart(header) // a bytes.Buffer never fails
		part.Write(f.content)
	}
	w.Close()
	return w.FormDataContentType(), b.Bytes()
}

// upload sends files with the form on the page of a pet.
func (b *browser) upload(pet int64, files ...file) shown {
	b.s.t.Helper()
	path := fmt.Sprint("/console/pets/", pet)
	return b.send(path+"/photos", b.get(path).form(b.s.t, path+"/photos").Get("once"), files...)
}

func (b *browser) send(path, once string, files ...file) shown {
	b.s.t.Helper()
	contentType, body := multipartForm(once, files...)
	return b.sendBody(path, contentType, bytes.NewReader(body))
}

func (b *browser) sendBody(path, contentType string, body io.Reader) shown {
	b.s.t.Helper()
	req, err := http.NewRequest(http.MethodPost, b.s.url+path, body)
	if err != nil {
		b.s.t.Fatal(err)
	}
	req.Header = b.header.Clone()
	req.Header.Set("Content-Type", contentType)
	return b.roundTrip(req)
}

var (
	jpegFile = file{"rex.jpg", "image/jpeg", phototest.JPEG(phototest.Drawing(300, 200))}
	pngFile  = file{"rex.png", "image/png", phototest.PNG(phototest.Drawing(200, 300))}
	webpFile = file{"rex.webp", "image/webp", phototest.WebP(320, 240, phototest.Grey)}
)

// as is the file with another name and type.
func (f file) as(name, contentType string) file { return file{name, contentType, f.content} }

var thumbnails = regexp.MustCompile(`<img src="(/console/photos/[0-9]+/thumbnail[^"]*)" alt="([^"]*)"`)

// gallery returns the alternative texts of the photos on the page of a pet.
func (b *browser) gallery(pet int64) (alts []string) {
	b.s.t.Helper()
	for _, m := range thumbnails.FindAllStringSubmatch(b.get(fmt.Sprint("/console/pets/", pet)).body, -1) {
		if p := b.get(html.UnescapeString(m[1])); p.status != http.StatusOK {
			b.s.t.Errorf("%s: got %d, want an image", m[1], p.status)
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
	pet := s.pet(`"Rex" & Co`)
	path := fmt.Sprint("/console/pets/", pet.ID)
	b.upload(pet.ID, jpegFile).wantMoved(t, "one file", path).wantDone(t, "photo-added")
	b.get(path).want(t, "one file", http.StatusOK, "The photo was added.")
	b.upload(pet.ID, pngFile.as("a", "application/octet-stream"), webpFile.as("b", ""), jpegFile).wantMoved(t, "several files", path).wantDone(t, "photos-added")
	if got, want := fmt.Sprint(b.gallery(pet.ID)), `[Photo 1 of "Rex" & Co Photo 2 of "Rex" & Co Photo 3 of "Rex" & Co Photo 4 of "Rex" & Co]`; got != want {
		t.Errorf("got the photos %s, want %s", got, want)
	}
	page := b.get(path)
	links := regexp.MustCompile(`<a href="(/console/photos/([0-9]+)/image[^"]*)">`).FindAllStringSubmatch(page.body, -1)
	if got := fmt.Sprint(links[0][2], links[1][2], links[2][2], links[3][2]); got != "1234" {
		t.Errorf("got the photos %s, want the oldest first", got)
	}
	remove := path + "/photos/2/remove"
	form := page.form(t, remove)
	b.post(remove, form).wantMoved(t, "remove", path).wantDone(t, "photo-removed")
	b.post(remove, form).wantMoved(t, "remove again", path).wantDone(t, "photo-removed")
	if got := b.gallery(pet.ID); len(got) != 3 {
		t.Errorf("got the photos %q, want 3", got)
	}
	b.get(html.UnescapeString(links[1][1])).want(t, "a removed photo", http.StatusNotFound, "There is no photo with id 2.")
	b.get(path).want(t, "room for more", http.StatusOK, path+"/photos")
	for range 7 {
		s.photo(pet.ID)
	}
	full := b.get(path)
	full.want(t, "full", http.StatusOK, "10 photos, which is the most", "Photo 10 of")
	if strings.Contains(full.body, `type="file"`) {
		t.Error("a pet with ten photos still has the form")
	}
	for what, p := range map[string]shown{
		"nothing chosen": b.send(path+"/photos", "", file{"", "application/octet-stream", nil}),
		"no file field":  b.send(path+"/photos", ""),
	} {
		p.want(t, what, http.StatusBadRequest, "Choose at least one picture.")
	}
	b.post(path+"/photos", nil).want(t, "another kind of form", http.StatusBadRequest, "with the form on the page")
	b.send("/console/pets/99/photos", "", jpegFile).want(t, "no pet", http.StatusNotFound)
	b.send("/console/pets/x/photos", "", jpegFile).want(t, "no id", http.StatusNotFound)
}

// TestRefusedFiles: each file that can't be a photo is named with the reason, and the
// others are added.
func TestRefusedFiles(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn(everything)
	pet := s.pet("Rex")
	polyglot := []byte("\xff\xd8\xff\xe0<html><script>alert(1)</script>")
	p := b.upload(pet.ID, jpegFile,
		file{"page.html", "text/html", []byte("<!doctype html><script>alert(1)</script>")},
		file{"<b>both.jpg", "image/jpeg", polyglot},
		file{"page.jpg", "", []byte("<!doctype html>")},
		file{"moving.gif", "image/gif", []byte("GIF89a")},
		file{"large.png", "image/png", append(phototest.PNG(phototest.Drawing(9, 9)), make([]byte, animalstore.MaxUpload)...)},
		file{"cut.png", "image/png", pngFile.content[:50]},
		file{"empty.jpg", "image/jpeg", nil},
		pngFile,
	)
	p.want(t, "refused", http.StatusUnsupportedMediaType, "2 photos were added. 7 files weren’t added.",
		"<bdi>page.html</bdi>: It isn’t a JPEG, PNG or WebP picture.",
		"<bdi>&lt;b&gt;both.jpg</bdi>: ",
		"<bdi>page.jpg</bdi>: It isn’t a JPEG, PNG or WebP picture.",
		"<bdi>moving.gif</bdi>: It isn’t a JPEG, PNG or WebP picture.",
		"<bdi>large.png</bdi>: It is larger than 10 MiB.",
		"<bdi>cut.png</bdi>: ", "<bdi>empty.jpg</bdi>: ", `role="alert"`, `data-here="/console/pets/1"`)
	if got := b.gallery(pet.ID); len(got) != 2 {
		t.Errorf("got the photos %q, want the two that are pictures", got)
	}
	p = b.upload(pet.ID, file{strings.Repeat("ü", 300) + "\xff", "text/plain", nil})
	p.want(t, "a long name", http.StatusUnsupportedMediaType, strings.Repeat("ü", 80)+"…", "One file wasn’t added.")

	var many []file
	for i := range 12 {
		many = append(many, jpegFile.as(fmt.Sprint("file ", i), "image/jpeg"))
	}
	p = b.upload(pet.ID, many...)
	p.want(t, "too many", http.StatusConflict, "8 photos were added. 4 files weren’t added.", "<bdi>file 8</bdi>: The pet has 10 photos, which is the most it can have", "<bdi>file 11</bdi>")

	other := s.pet("Max")
	for len(many) < 40 {
		many = append(many, file{"note", "text/plain", nil})
	}
	b.send(fmt.Sprint("/console/pets/", other.ID, "/photos"), "", many[12:]...).want(t, "very many", http.StatusUnsupportedMediaType, "21 files weren’t", "<li>Only the first 20 files were read")
}

// TestFullStore: photos that don't fit are refused, and those before them stay.
func TestFullStore(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config) { c.PhotosLimit = 12_000 })
	b := s.signedIn(everything)
	pet := s.pet("Rex")
	b.upload(pet.ID, jpegFile, jpegFile.as("second", "image/jpeg"), jpegFile.as("third", "image/jpeg")).want(t, "full", http.StatusServiceUnavailable, "<bdi>third</bdi>: The store has no space left for photos.", "added")
	if got := b.gallery(pet.ID); len(got) == 0 {
		t.Error("got no photos, want those that fit")
	}
}

// TestRefusalTexts: what the API says to programs is said to people.
func TestRefusalTexts(t *testing.T) {
	for code, want := range map[animalstore.Code]string{
		animalstore.Overloaded: "try again", animalstore.StorageFull: "no space", animalstore.TooManyPhotos: "remove one", animalstore.PayloadTooLarge: "10 MiB",
		animalstore.InvalidImage: "The picture is damaged.", animalstore.KeyBanned: "banned",
	} {
		got := console.ExplainRefusal(animalstore.Errorf(code, "the picture is damaged"))
		if !strings.Contains(got, want) || !strings.HasSuffix(got, ".") || got[0] >= 'a' {
			t.Errorf("%s: got %q, want a sentence with %q", code, got, want)
		}
	}
}

// TestUploadOnce: a form with photos that is sent twice adds them once.
func TestUploadOnce(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn(everything)
	pet := s.pet("Rex")
	path := fmt.Sprint("/console/pets/", pet.ID)
	once := b.get(path).form(t, path+"/photos").Get("once")
	for range 3 {
		b.send(path+"/photos", once, jpegFile, jpegFile, pngFile).wantMoved(t, "sent", path)
	}
	if got := b.gallery(pet.ID); len(got) != 3 {
		t.Errorf("got the photos %q, want the three of the form", got)
	}
	b.send(path+"/photos", once, pngFile.as(jpegFile.name, "image/png")).want(t, "another file", http.StatusUnprocessableEntity, "choose it again")
}

// TestUploadGuards: nothing is stored for another site, without a session, or without the
// permission.
func TestUploadGuards(t *testing.T) {
	t.Parallel()
	s := start(t)
	pet := s.pet("Rex")
	added := s.photo(pet.ID)
	path := fmt.Sprint("/console/pets/", pet.ID)
	remove := fmt.Sprint(path, "/photos/", added.ID, "/remove")
	b, reader := s.signedIn(everything), s.signedIn(animalstore.Read)
	before := s.content()
	for _, header := range []http.Header{{"Sec-Fetch-Site": {"cross-site"}}, {"Origin": {"https://elsewhere.example"}}} {
		b.header = header
		b.send(path+"/photos", "", jpegFile).want(t, "another site adds", http.StatusForbidden, "another site")
		b.post(remove, nil).want(t, "another site removes", http.StatusForbidden, "another site")
	}
	s.browser().send(path+"/photos", "", jpegFile).want(t, "signed out", http.StatusUnauthorized, "nothing was changed", `name="next" value="`+path+`"`)
	page := reader.get(path)
	page.want(t, "read only", http.StatusOK, "Photo 1 of Rex")
	if strings.Contains(page.body, "/photos\"") || strings.Contains(page.body, "/remove") {
		t.Errorf("a key that may only read gets forms:\n%s", page.body)
	}
	reader.send(path+"/photos", "", jpegFile).want(t, "read only", http.StatusForbidden)
	if after := s.content(); after != before {
		t.Errorf("the store changed from\n%s\nto\n%s", before, after)
	}
	writer := s.signedIn(animalstore.Write)
	writer.send(path+"/photos", "", jpegFile).wantMoved(t, "write only", "/console/pets/new").wantDone(t, "photo-added")
	writer.send(path+"/photos", "", file{"a", "text/plain", nil}).want(t, "write only", http.StatusUnsupportedMediaType)
}

// TestUploadOverLimit: photos are charged one by one. Over the limit, the page says how many
// were added.
func TestUploadOverLimit(t *testing.T) {
	t.Parallel()
	s := start(t)
	secret, _ := s.key("shop", everything, 3)
	pet := s.pet("Rex")
	b := s.browser()
	b.signIn(secret)
	path := fmt.Sprint("/console/pets/", pet.ID)
	p := b.send(path+"/photos", "", jpegFile, pngFile, webpFile, jpegFile)
	p.want(t, "over the limit", http.StatusTooManyRequests, "2 photos were added. 2 files weren’t added.", "of this minute are used up", `href="`+path+`">Back</a>`)
	if strings.Contains(p.body, "Send it again") {
		t.Error("the page offers to send files again, which it doesn't have")
	}
	s.advance(time.Minute)
	if got := b.gallery(pet.ID); len(got) != 0 { // 6 calls are too many for this key
		t.Errorf("got %q, want a page over the limit", got)
	}
	s.signedIn(everything).get(path).want(t, "those before", http.StatusOK, "Photo 2 of Rex")
}

// TestUploadStreams: a file becomes a photo before the next one is sent, so no form is in
// memory, and slow connections have time.
func TestUploadStreams(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config) {
		c.Timeouts = server.Timeouts{ReadHeader: time.Minute, Read: 300 * time.Millisecond, Write: 300 * time.Millisecond, Drain: time.Minute}
	})
	b := s.signedIn(everything)
	pet := s.pet("Rex")
	contentType, body := multipartForm("", jpegFile, pngFile, webpFile)
	reader, writer := io.Pipe()
	go func() {
		defer writer.Close()
		for i, f := range []file{jpegFile, pngFile, webpFile} {
			end := min(len(body), bytes.Index(body, f.content)+len(f.content)+80) // with the boundary that ends it
			for _, half := range [][]byte{body[:end/2], body[end/2 : end]} {
				time.Sleep(200 * time.Millisecond) // as a slow connection does
				writer.Write(half)
			}
			body = body[end:]
			for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
				if _, err := s.db.Photo(t.Context(), int64(i+1)); err == nil {
					break
				}
				if time.Now().After(deadline) {
					t.Errorf("file %d isn't a photo before the next one is sent", i+1)
					return
				}
			}
		}
		writer.Write(body)
	}()
	path := fmt.Sprint("/console/pets/", pet.ID)
	b.sendBody(path+"/photos", contentType, reader).wantMoved(t, "slowly", path).wantDone(t, "photos-added")
}

// TestImages: signed-in people see images as the API sends them, free of charge.
func TestImages(t *testing.T) {
	t.Parallel()
	s := start(t)
	pet := s.pet("Rex")
	added := s.photo(pet.ID)
	secret, _ := s.key("shop", animalstore.Read, 5)
	b := s.browser()
	b.signIn(secret)
	before := s.left(secret)
	for _, kind := range []string{"image", "thumbnail"} {
		path := fmt.Sprint("/console/photos/", added.ID, "/", kind)
		req, err := http.NewRequest(http.MethodGet, s.url+strings.Replace(path, "/console", "/v1", 1), nil)
		if err != nil {
			t.Fatal(err)
		}
		owner, _ := s.key("owner", everything, 1<<30)
		req.Header.Set("Authorization", "Bearer "+owner)
		want := s.browser().roundTrip(req)
		for range 10 {
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
		}
		if got := b.do(http.MethodHead, path, nil); got.status != http.StatusOK || got.header.Get("Content-Length") != fmt.Sprint(len(want.body)) {
			t.Errorf("HEAD %s: got %d %v, want the header of the image", path, got.status, got.header)
		}
		b.header.Set("If-None-Match", want.header.Get("ETag"))
		if got := b.get(path); got.status != http.StatusNotModified || got.body != "" {
			t.Errorf("%s: got %d, want 304", path, got.status)
		}
		b.header.Del("If-None-Match")
		b.get(strings.Replace(path, "/1/", "/99/", 1)).want(t, "no photo", http.StatusNotFound, "There is no photo with id 99.", "Sign out")
		b.get(strings.Replace(path, "/1/", "/x/", 1)).want(t, "no id", http.StatusNotFound)
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

// TestFaces: lists show the oldest photo of each pet, or a placeholder, for at most four
// calls.
func TestFaces(t *testing.T) {
	t.Parallel()
	s := start(t)
	secret, _ := s.key("shop", everything, 1<<30)
	b := s.browser()
	b.signIn(secret)
	for i := range 20 {
		pet := s.pet(fmt.Sprint("Rex ", i))
		for range animalstore.MaxPhotos {
			s.photo(pet.ID)
		}
		if _, _, err := s.db.PlaceOrder(t.Context(), pet.ID, animalstore.At(s.clock()), nil); err != nil {
			t.Fatal(err)
		}
	}
	faces := regexp.MustCompile(`<img class="face" src="/console/photos/([0-9]+)/thumbnail\?at=[0-9]+" alt="" width="48" height="48" loading="lazy"`)
	for _, path := range []string{"/console/pets", "/console/orders"} {
		before := s.left(secret)
		p := b.get(path)
		if got := before - s.left(secret) - 1; got > 4 {
			t.Errorf("%s: got %d requests charged, want at most 4", path, got)
		}
		var got []string
		for _, m := range faces.FindAllStringSubmatch(p.body, -1) {
			got = append(got, m[1])
		}
		if want := "191 181 171 161 151 141 131 121 111 101 91 81 71 61 51 41 31 21 11 1"; strings.Join(got, " ") != want {
			t.Errorf("%s: got the photos %s, want %s", path, got, want)
		}
	}
	s.pet("\u202E élan")
	p := b.get("/console/pets")
	p.want(t, "a placeholder", http.StatusOK, `aria-hidden="true"><bdi>É</bdi></span>`)
	if tone := regexpFind(t, p.body, `<span class="face (tone[0-7])"`); !strings.Contains(b.get("/console/pets").body, `<span class="face `+tone+`"`) {
		t.Error("the colour of a placeholder changes")
	}
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

// TestPhotoEvents: events of photos lead to their pet, and to the photo while it exists.
func TestPhotoEvents(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn(everything)
	pet := s.pet("Rex")
	kept, removed := s.photo(pet.ID), s.photo(pet.ID)
	if err := s.db.DeletePhoto(t.Context(), removed.ID, func(*animalstore.Photo) error { return nil }); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/console/events", "/console/events?type=photo.*", "/console"} {
		p := b.get(path)
		link := regexpFind(t, p.body, `<td>photo.created</td><td><a href="([^"]*)">photo/1</a></td><td class="name"><div class="clamp"><a href="/console/pets/1">pet 1</a>, <bdi>64 × 48</bdi>`)
		if want := fmt.Sprint("/console/photos/", kept.ID, "/image?at=", kept.CreatedAt.UnixMilli()); link != want {
			t.Errorf("%s: the event leads to %s, want %s", path, link, want)
		}
		b.get(link).want(t, "the photo", http.StatusOK)
		p.want(t, path, http.StatusOK, "<td>photo.created</td><td>photo/2</td>", "<td>photo.deleted</td><td>photo/2</td>")
	}
	b.get("/console/events").want(t, "the choices", http.StatusOK, "<option>photo.*</option>", "photo.created,photo.deleted")
}
