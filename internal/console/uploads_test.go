package console_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"animalstore"
	"animalstore/internal/console"
	"animalstore/internal/photo/phototest"
	"animalstore/internal/server/servertest"
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
	b.s.T.Helper()
	path := fmt.Sprint("/console/pets/", pet)
	return b.send(path+"/photos", b.get(path).form(b.s.T, path+"/photos").Get("once"), files...)
}

func (b *browser) send(path, once string, files ...file) shown {
	b.s.T.Helper()
	contentType, body := multipartForm(once, files...)
	return b.sendBody(path, contentType, bytes.NewReader(body))
}

func (b *browser) sendBody(path, contentType string, body io.Reader) shown {
	b.s.T.Helper()
	req, err := http.NewRequest(http.MethodPost, b.s.URL+path, body)
	if err != nil {
		b.s.T.Fatal(err)
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

// TestRefusedFiles: each file that can't be a photo is named with the reason, and the
// others are added.
func TestRefusedFiles(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn(everything)
	pet := s.Pet("Rex")
	polyglot := []byte("\xff\xd8\xff\xe0<html><script>alert(1)</script>")
	p := b.upload(pet.ID, jpegFile,
		file{"page.html", "text/html", []byte("<!doctype html><script>alert(1)</script>")},
		file{"<b>both.jpg", "image/jpeg", polyglot},
		file{"large.png", "image/png", append(phototest.PNG(phototest.Drawing(9, 9)), make([]byte, animalstore.MaxUpload)...)},
		file{"cut.png", "image/png", pngFile.content[:50]},
		pngFile.as("png.jpg", "image/jpeg"),
		file{"html.jpg", "image/jpeg", []byte("<!doctype html>")},
		pngFile,
	)
	p.want(t, "refused", http.StatusUnsupportedMediaType, "<bdi>&lt;b&gt;both.jpg</bdi>: ")
	for _, name := range []string{"page.html", "large.png", "cut.png", "html.jpg"} {
		p.want(t, "refused", http.StatusUnsupportedMediaType, "<bdi>"+name+"</bdi>: ")
	}
	if got := b.gallery(pet.ID); len(got) != 3 {
		t.Errorf("got the photos %q, want the three that are pictures", got)
	}
	var many []file
	for i := range 12 {
		many = append(many, jpegFile.as(fmt.Sprint("file ", i), "image/jpeg"))
	}
	p = b.upload(pet.ID, many...)
	p.want(t, "too many", http.StatusConflict, "<bdi>file 7</bdi>", "<bdi>file 11</bdi>")
	if got := b.gallery(pet.ID); len(got) != animalstore.MaxPhotos {
		t.Errorf("got the photos %q, want %d", got, animalstore.MaxPhotos)
	}
}

// TestUploadOnce: a form with photos that is sent twice adds them once.
func TestUploadOnce(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn(everything)
	pet := s.Pet("Rex")
	path := fmt.Sprint("/console/pets/", pet.ID)
	once := b.get(path).form(t, path+"/photos").Get("once")
	for range 3 {
		b.send(path+"/photos", once, jpegFile, jpegFile, pngFile).wantMoved(t, "sent", path)
	}
	if got := b.gallery(pet.ID); len(got) != 3 {
		t.Errorf("got the photos %q, want the three of the form", got)
	}
	b.send(path+"/photos", once, pngFile.as(jpegFile.name, "image/png")).want(t, "another file", http.StatusUnprocessableEntity)
}

// TestUploadMemory: only files may be large, because everything else is kept in memory.
func TestUploadMemory(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn(everything)
	path := fmt.Sprint("/console/pets/", s.Pet("Rex").ID, "/photos")
	large := strings.Repeat("a", 100_000)
	b.post(path, url.Values{"photo": {large}}).want(t, "not multipart", http.StatusRequestEntityTooLarge)
	b.send(path, "", jpegFile, pngFile.as(large, "image/png")).want(t, "a long header", http.StatusBadRequest)
	var fields bytes.Buffer
	form := multipart.NewWriter(&fields)
	for i := range 5 {
		form.WriteField(fmt.Sprint("field ", i), large[:20_000])
	}
	form.Close()
	b.sendBody(path, form.FormDataContentType(), &fields).want(t, "many fields", http.StatusBadRequest, "too large")
	larger := file{"larger.jpg", "image/jpeg", append(slices.Clone(jpegFile.content), large...)}
	b.send(path, "", larger, larger).wantDone(t, "photos-added")
}

// TestUploadOverLimit: photos are charged one by one. Over the limit, the page says how many
// were added.
func TestUploadOverLimit(t *testing.T) {
	t.Parallel()
	s := start(t)
	secret, _ := s.Key("shop", everything, 3)
	pet := s.Pet("Rex")
	b := s.browser()
	b.signIn(secret)
	path := fmt.Sprint("/console/pets/", pet.ID)
	p := b.send(path+"/photos", "", jpegFile, pngFile, webpFile, jpegFile)
	p.want(t, "over the limit", http.StatusTooManyRequests)
	s.signedIn(everything).get(path).want(t, "those before", http.StatusOK, "Photo 2 of Rex")
}

// TestUploadStreams: a file becomes a photo before the next one is sent, so no form is in
// memory.
func TestUploadStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startInBubble(t)
		b := s.signedIn(everything)
		pet := s.Pet("Rex")
		contentType, body := multipartForm("", jpegFile, pngFile)
		reader, writer := io.Pipe()
		path := fmt.Sprint("/console/pets/", pet.ID)
		response := make(chan shown)
		go func() { response <- b.sendBody(path+"/photos", contentType, reader) }()
		end := bytes.Index(body, jpegFile.content) + len(jpegFile.content) + 80 // with the boundary that ends it
		writer.Write(body[:end])
		synctest.Wait()
		if _, err := s.DB.Photo(t.Context(), 1); err != nil {
			t.Errorf("before the second file is sent: got %v, want the first to be a photo", err)
		}
		writer.Write(body[end:])
		writer.Close()
		(<-response).wantMoved(t, "both files", path).wantDone(t, "photos-added")
	})
}

// apiWithDeadlines is an API that only sets the deadlines of its connection, with a session
// for everybody.
type apiWithDeadlines struct {
	console.Server
	console.Sessions
	read, write error
}

func (a *apiWithDeadlines) ServeAPI(w http.ResponseWriter, r *http.Request, _ *[32]byte) {
	io.Copy(io.Discard, r.Body)
	control := http.NewResponseController(w)
	a.read, a.write = control.SetReadDeadline(time.Now().Add(time.Minute)), control.SetWriteDeadline(time.Now().Add(time.Minute))
	if r.Method == http.MethodPost {
		w.WriteHeader(http.StatusCreated)
	}
	w.Write([]byte("{}"))
}

func (a *apiWithDeadlines) KeyOf(*http.Request, [32]byte) (*animalstore.Key, error) {
	return &animalstore.Key{ID: 1, Permissions: everything}, nil
}

func (a *apiWithDeadlines) IsHTTPS(*http.Request) bool { return false }

func (a *apiWithDeadlines) FindSession(context.Context, [32]byte, time.Time) (secret [32]byte, found bool, err error) {
	return secret, true, nil
}

// TestDeadlines: the API can give uploads and images more time, once their turn has come.
func TestDeadlines(t *testing.T) {
	api := &apiWithDeadlines{read: http.ErrNotSupported, write: http.ErrNotSupported}
	listener := httptest.NewServer(console.New(console.Config{Now: time.Now, Server: api, Sessions: api}))
	defer listener.Close()
	b := &browser{s: &site{Store: &servertest.Store{T: t, URL: listener.URL}, http: http.DefaultTransport.(*http.Transport)},
		cookie: "any", header: http.Header{}}
	b.send("/console/pets/1/photos", "", jpegFile).wantMoved(t, "upload", "/console/pets/1")
	if api.read != nil || api.write != nil {
		t.Errorf("the deadlines of an upload: got %v and %v, want them set", api.read, api.write)
	}
	api.write = http.ErrNotSupported
	b.get("/console/photos/1/image").want(t, "image", http.StatusOK)
	if api.write != nil {
		t.Errorf("the deadline of an image: got %v, want it set", api.write)
	}
}

// TestBrokenUpload: a form that breaks off adds the files before, and nothing of the last.
func TestBrokenUpload(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn(everything)
	pet := s.Pet("Rex")
	path := fmt.Sprint("/console/pets/", pet.ID)
	contentType, body := multipartForm("", jpegFile, pngFile)
	for what, end := range map[string]int{"in a file": len(body) - 200, "in the boundary": len(body) - 20} {
		p := b.sendBody(path+"/photos", contentType, bytes.NewReader(body[:end]))
		p.want(t, what, http.StatusBadRequest, "<bdi>rex.png</bdi>: ")
	}
	if got := b.gallery(pet.ID); len(got) != 2 {
		t.Errorf("got the photos %q, want the first file of each form", got)
	}
}
