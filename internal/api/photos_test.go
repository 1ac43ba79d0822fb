package api_test

import (
	"bytes"
	"context"
	"fmt"
	"image"
	_ "image/jpeg"
	_ "image/png"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/photo/phototest"
)

// smallJPEG is a picture that is quickly read.
var smallJPEG = string(phototest.JPEG(phototest.Drawing(64, 48)))

// upload is a call that adds a photo to a pet.
func upload(petID int64, contentType, body string) call {
	return call{method: "POST", path: fmt.Sprintf("/v1/pets/%d/photos", petID), header: http.Header{"Content-Type": {contentType}}, body: body}
}

// addPhoto adds a photo to a pet, without the API.
func (s *service) addPhoto(t testing.TB, petID int64) animalstore.Photo {
	t.Helper()
	return s.addPhotoOf(t, petID, 64, 48)
}

func (s *service) addPhotoOf(t testing.TB, petID int64, width, height int) animalstore.Photo {
	t.Helper()
	p, _, err := s.db.DB.AddPhoto(t.Context(), db.NewPhoto{
		PetID: petID, ContentType: "image/jpeg", Width: width, Height: height, Image: []byte(smallJPEG), Thumbnail: []byte(smallJPEG), At: animalstore.At(s.clock.Now()),
	}, 1<<40, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPhotos: a photo is added, listed, read and removed.
func TestPhotos(t *testing.T) {
	s := start(t)
	pet := s.add(t, animalstore.NewPet{Name: "Rex"})[0].ID
	created := s.do(t, upload(pet, "image/jpeg", string(phototest.JPEG(phototest.Drawing(2000, 20)))))
	p := read[animalstore.Photo](t, created, http.StatusCreated)
	want := animalstore.Photo{ID: p.ID, PetID: pet, ContentType: "image/jpeg", Width: 1600, Height: 16, Bytes: p.Bytes, CreatedAt: animalstore.At(s.clock.Now())}
	path := fmt.Sprint("/v1/photos/", p.ID)
	if p != want || created.header.Get("Location") != path {
		t.Errorf("got %+v at %s, want %+v at %s", p, created.header.Get("Location"), want, path)
	}
	if got := s.do(t, call{path: path}); !bytes.Equal(got.body, created.body) || got.header.Get("Etag") != created.header.Get("Etag") {
		t.Errorf("got %v, want what the upload returned: %v", got, created)
	}
	for rest, size := range map[string]image.Point{"/image": {1600, 16}, "/thumbnail": {320, 3}} {
		got := s.do(t, call{path: path + rest})
		config, format, err := image.DecodeConfig(bytes.NewReader(got.body))
		if err != nil || format != "jpeg" || image.Pt(config.Width, config.Height) != size {
			t.Errorf("%s: got %s of %d × %d, %v, want jpeg of %v", rest, format, config.Width, config.Height, err, size)
		}
		if rest == "/image" && int64(len(got.body)) != p.Bytes {
			t.Errorf("the image has %d bytes, want %d", len(got.body), p.Bytes)
		}
	}
	s.do(t, remove(path)).want(t, http.StatusNoContent, "")
	for _, rest := range []string{"", "/image", "/thumbnail"} {
		s.do(t, call{path: path + rest}).want(t, http.StatusNotFound, animalstore.PhotoNotFound)
	}
}

// TestUploadsAreRefused: each in the order of the contract.
func TestUploadsAreRefused(t *testing.T) {
	t.Parallel()
	s := start(t, func(with *setup) { with.photosLimit = 100_000 })
	pet := s.add(t, animalstore.NewPet{Name: "Rex"})[0].ID
	full := s.add(t, animalstore.NewPet{Name: "Mia"})[0].ID
	for range animalstore.MaxPhotos {
		s.addPhoto(t, full)
	}
	large := strings.Repeat("x", animalstore.MaxUpload+1)
	headers := func(c call, name, value string) call {
		c.header = http.Header{"Content-Type": c.header["Content-Type"], name: {value}}
		return c
	}
	streamed := func(c call) call {
		c.stream, c.body = struct{ io.Reader }{strings.NewReader(c.body)}, "" // net/http knows the size of a strings.Reader
		return c
	}
	noise := phototest.Drawing(400, 400) // larger than the limit of all photos
	for i := range noise.Pix {
		noise.Pix[i] = uint8(i * i >> 7)
	}
	for _, c := range []struct {
		name   string
		call   call
		status int
		code   animalstore.Code
	}{
		{"size before type", upload(pet, "text/plain", large), 413, "payload_too_large"},
		{"size in chunks before type", streamed(upload(pet, "text/plain", large)), 413, "payload_too_large"},
		{"size in chunks", streamed(upload(pet, "image/png", large)), 413, "payload_too_large"},
		{"type before content", upload(pet, "text/plain", "x"), 415, "unsupported_media_type"},
		{"no type", streamed(call{method: "POST", path: "/v1/pets/1/photos", body: smallJPEG}), 415, "unsupported_media_type"},
		{"JSON", upload(pet, "application/json", "{}"), 415, "unsupported_media_type"},
		{"GIF", upload(pet, "image/gif", "GIF89a"), 415, "unsupported_media_type"},
		{"compressed", headers(upload(pet, "image/jpeg", smallJPEG), "Content-Encoding", "gzip"), 415, "unsupported_media_type"},
		{"content before pet", upload(99, "image/jpeg", "x"), 400, "invalid_image"},
		{"another format", upload(pet, "image/png", smallJPEG), 400, "invalid_image"},
		{"no body", upload(pet, "image/jpeg", ""), 400, "invalid_image"},
		{"an invalid Idempotency-Key", headers(upload(pet, "image/jpeg", smallJPEG), "Idempotency-Key", "a b"), 400, "invalid_parameter"},
		{"pet before pixels", upload(99, "image/jpeg", smallJPEG[:len(smallJPEG)-10]), 404, "pet_not_found"},
		{"no such pet", upload(99, "image/jpeg", smallJPEG), 404, "pet_not_found"},
		{"too many", upload(full, "image/jpeg", smallJPEG), 409, "too_many_photos"},
		{"no space", upload(pet, "image/jpeg", string(phototest.JPEG(noise))), 503, "storage_full"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.call.bad = true
			s.do(t, c.call).want(t, c.status, c.code)
		})
	}
	// What the header says is enough.
	s.raw(t, fmt.Sprintf("POST /v1/pets/%d/photos HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: image/png\r\nContent-Length: %d\r\n\r\n",
		pet, s.owner, animalstore.MaxUpload+1)).want(t, http.StatusRequestEntityTooLarge, animalstore.PayloadTooLarge)
	s.do(t, call{method: "POST", path: "/v1/pets/abc/photos", header: http.Header{"Content-Type": {"image/jpeg"}}, body: smallJPEG, bad: true}).want(t, http.StatusNotFound, animalstore.PetNotFound)
	if got, err := s.db.Photos(t.Context(), animalstore.PhotoQuery{PetIDs: []int64{pet}}, db.Page{Limit: 10}); err != nil || len(got) != 0 {
		t.Errorf("got photos %+v, %v, want none of what was refused", got, err)
	}
	s.do(t, upload(pet, "image/jpeg", smallJPEG)).want(t, http.StatusCreated, "") // there is space for a small one
	s.do(t, call{method: "POST", path: "/v1/pets", body: `{"name":"Max","categoryId":1}`}).want(t, http.StatusCreated, "")
}

// TestImageHeaders: nothing that was uploaded can run, and images are kept for good.
func TestImageHeaders(t *testing.T) {
	parts := new(partCounter)
	s := start(t, func(with *setup) {
		with.wrap = func(store *faultyDB) db.DB {
			parts.DB = store
			return parts
		}
	})
	pet := s.add(t, animalstore.NewPet{Name: "Rex"})[0].ID
	const script = "<script>alert(1)</script>"
	polyglot := phototest.InsertSegment([]byte(smallJPEG), 0xfe, []byte("*/=1;"+script+"/*"))
	p := read[animalstore.Photo](t, s.do(t, upload(pet, "image/jpeg", string(polyglot)+script)), http.StatusCreated)
	for _, rest := range []string{"/image", "/thumbnail"} {
		path := fmt.Sprint("/v1/photos/", p.ID, rest)
		got := s.do(t, call{path: path})
		if bytes.Contains(got.body, []byte("script")) || bytes.Equal(got.body, polyglot) {
			t.Errorf("%s contains what was uploaded", rest)
		}
		tag := got.header.Get("Etag")
		read := parts.read.Load()
		same := s.do(t, call{path: path, header: http.Header{"If-None-Match": {tag}}})
		same.want(t, http.StatusNotModified, "")
		head := s.do(t, call{method: "HEAD", path: path})
		head.want(t, http.StatusOK, "")
		if n := parts.read.Load() - read; n != 0 {
			t.Errorf("%s: HEAD and 304 read %d parts of the image, want none", rest, n)
		}
		if head.header.Get("Content-Length") != fmt.Sprint(len(got.body)) {
			t.Errorf("HEAD %s: got length %q, want %d", rest, head.header.Get("Content-Length"), len(got.body))
		}
		for name, want := range map[string]string{
			"Content-Type": "image/jpeg", "X-Content-Type-Options": "nosniff", "Content-Disposition": "inline", "Etag": tag,
			"Content-Security-Policy": "default-src 'none'; sandbox", "Cache-Control": "private, max-age=3600",
		} {
			for _, r := range []response{got, same, head} {
				if got := r.header.Get(name); got != want && (name != "Content-Type" || r.status == http.StatusOK) {
					t.Errorf("%s, status %d: got %s %q, want %q", rest, r.status, name, got, want)
				}
			}
		}
	}
	// A store that was restored from a backup may assign an id again.
	var tags []string
	for range 2 {
		restored := start(t)
		restored.clock.Advance(time.Duration(len(tags)) * time.Hour)
		again := restored.addPhoto(t, restored.add(t, animalstore.NewPet{Name: "Rex"})[0].ID)
		tags = append(tags, restored.do(t, call{path: fmt.Sprint("/v1/photos/", again.ID, "/image")}).header.Get("Etag"))
	}
	if tags[0] == tags[1] {
		t.Errorf("two photos with the same id have the same ETag %s", tags[0])
	}
	one := s.do(t, call{path: fmt.Sprint("/v1/photos/", p.ID, "/image")}).header.Get("Etag")
	if other := s.do(t, call{path: fmt.Sprint("/v1/photos/", p.ID, "/thumbnail")}).header.Get("Etag"); one == other {
		t.Errorf("image and thumbnail have the same ETag %s", one)
	}
}

// TestLargeImage: an image of several parts arrives whole, and one that is removed
// in between doesn't look whole.
func TestLargeImage(t *testing.T) {
	s := start(t)
	pet := s.add(t, animalstore.NewPet{Name: "Rex"})[0].ID
	data := bytes.Repeat([]byte("0123456789abcdef\n"), db.PartSize/4)
	p, _, err := s.db.DB.AddPhoto(t.Context(), db.NewPhoto{PetID: pet, ContentType: "image/png", Width: 1, Height: 1, Image: data, Thumbnail: data[:1], At: animalstore.At(s.clock.Now())}, 1<<40, nil)
	if err != nil {
		t.Fatal(err)
	}
	path := fmt.Sprint("/v1/photos/", p.ID, "/image")
	if got := s.do(t, call{path: path}); !bytes.Equal(got.body, data) {
		t.Errorf("got %d bytes, want the %d that are stored", len(got.body), len(data))
	}
	// The second part is gone.
	calls := 0
	s.db.arm("ImagePart", func(ctx context.Context) error {
		if calls++; calls > 1 {
			return db.ErrNotFound
		}
		return nil
	})
	defer s.db.arm("ImagePart", nil)
	if got, err := s.send(t.Context(), call{path: path}); err == nil {
		t.Errorf("got a response of %d bytes, want an error: only %d are left", len(got.body), db.PartSize)
	}
}

// partCounter counts the parts of images that are read.
type partCounter struct {
	db.DB
	read atomic.Int64
}

func (c *partCounter) ImagePart(ctx context.Context, id int64, kind db.ImageKind, number int) ([]byte, error) {
	c.read.Add(1)
	return c.DB.ImagePart(ctx, id, kind, number)
}
