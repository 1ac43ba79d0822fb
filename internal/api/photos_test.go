package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	_ "image/jpeg"
	_ "image/png"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/photo/phototest"
	"animalstore/internal/testenv"
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
	p, _, err := s.db.DB.AddPhoto(t.Context(), db.NewPhoto{
		PetID: petID, ContentType: "image/jpeg", Width: 64, Height: 48, Image: []byte(smallJPEG), Thumbnail: []byte(smallJPEG), At: animalstore.At(s.clock.Now()),
	}, 1<<40, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func decodePhoto(t testing.TB, r response) (p animalstore.Photo) {
	t.Helper()
	if err := json.Unmarshal(r.body, &p); err != nil || r.status >= 300 {
		t.Fatalf("got %v, want a photo (%v)", r, err)
	}
	return p
}

// TestPhotos: a photo is added, listed, read and removed.
func TestPhotos(t *testing.T) {
	s := start(t)
	pet := s.add(t, animalstore.NewPet{Name: "Rex"})[0].ID
	created := s.do(t, upload(pet, "image/jpeg", string(phototest.JPEG(phototest.Drawing(2000, 200)))))
	created.want(t, http.StatusCreated, "")
	p := decodePhoto(t, created)
	want := animalstore.Photo{ID: p.ID, PetID: pet, ContentType: "image/jpeg", Width: 1600, Height: 160, Bytes: p.Bytes, CreatedAt: animalstore.At(s.clock.Now())}
	path := fmt.Sprint("/v1/photos/", p.ID)
	if p != want || created.header.Get("Location") != path {
		t.Errorf("got %+v at %s, want %+v at %s", p, created.header.Get("Location"), want, path)
	}
	if got := s.do(t, call{path: path}); !bytes.Equal(got.body, created.body) || got.header.Get("Etag") != created.header.Get("Etag") {
		t.Errorf("got %v, want what the upload returned: %v", got, created)
	}
	for rest, size := range map[string]image.Point{"/image": {1600, 160}, "/thumbnail": {320, 32}} {
		got := s.do(t, call{path: path + rest})
		config, format, err := image.DecodeConfig(bytes.NewReader(got.body))
		if err != nil || format != "jpeg" || image.Pt(config.Width, config.Height) != size {
			t.Errorf("%s: got %s of %d × %d, %v, want jpeg of %v", rest, format, config.Width, config.Height, err, size)
		}
		if rest == "/image" && int64(len(got.body)) != p.Bytes {
			t.Errorf("the image has %d bytes, want %d", len(got.body), p.Bytes)
		}
	}
	writer := s.key(t, animalstore.Write)
	for _, read := range []string{path, path + "/image", path + "/thumbnail", fmt.Sprint("/v1/photos?petId=", pet)} {
		s.do(t, call{path: read, key: writer}).want(t, http.StatusForbidden, animalstore.InsufficientPermission)
	}
	s.do(t, call{method: "DELETE", path: path, header: http.Header{"If-Match": {`"other"`}}}).want(t, http.StatusPreconditionFailed, animalstore.PreconditionFailed)
	s.do(t, call{method: "DELETE", path: path, header: http.Header{"If-Match": {created.header.Get("Etag")}}}).want(t, http.StatusNoContent, "")
	for _, rest := range []string{"", "/image", "/thumbnail"} {
		s.do(t, call{path: path + rest}).want(t, http.StatusNotFound, animalstore.PhotoNotFound)
	}
	for _, id := range []string{"0", "-1", "abc", "01", "9223372036854775808"} {
		s.do(t, call{path: "/v1/photos/" + id + "/image", bad: true}).want(t, http.StatusNotFound, animalstore.PhotoNotFound)
		s.do(t, call{method: "DELETE", path: "/v1/photos/" + id, bad: true}).want(t, http.StatusNotFound, animalstore.PhotoNotFound)
	}
	if next := decodePhoto(t, s.do(t, upload(pet, "image/jpeg", smallJPEG))); next.ID <= p.ID {
		t.Errorf("got id %d after %d was removed, want a higher one", next.ID, p.ID)
	}
}

// TestListPhotos: photos are listed by pet, oldest first, in pages.
func TestListPhotos(t *testing.T) {
	s := start(t)
	pets := s.add(t, animalstore.NewPet{Name: "Rex"}, animalstore.NewPet{Name: "Mia"}, animalstore.NewPet{Name: "Max"})
	var all []animalstore.Photo
	for i := range 9 {
		all = append(all, s.addPhoto(t, pets[i%2].ID))
	}
	list := func(query string) (got []int64, next string) {
		t.Helper()
		r := s.do(t, call{path: "/v1/photos?" + query})
		var photos []animalstore.Photo
		if err := json.Unmarshal(r.body, &photos); err != nil || r.status != http.StatusOK {
			t.Fatalf("%s: got %v", query, r)
		}
		for _, p := range photos {
			got = append(got, p.ID)
		}
		for link := range strings.SplitSeq(r.header.Get("Link"), ", ") {
			if target, ok := strings.CutSuffix(link, `>; rel="next"`); ok {
				next = strings.TrimPrefix(target, "</v1/photos?")
			}
		}
		return got, next
	}
	for _, query := range []string{"petId=1,2&limit=4", "petId=1&petId=2&limit=4", "petId=2,1,77&limit=4"} {
		var got []int64
		for next := query; next != ""; {
			var page []int64
			page, next = list(next)
			got = append(got, page...)
		}
		if len(got) != len(all) || !slices.IsSorted(got) {
			t.Errorf("%s: got %d, want all %d in order", query, got, len(all))
		}
	}
	if got, _ := list(fmt.Sprint("petId=", pets[2].ID)); len(got) != 0 {
		t.Errorf("a pet without photos: got %d, want none", got)
	}
	many := strings.TrimSuffix(strings.Repeat("1,", 101), ",")
	for _, query := range []string{"", "petId=", "petId=0", "petId=x", "petId=1,", "petId=" + many} {
		s.do(t, call{path: "/v1/photos?" + query, bad: true}).want(t, http.StatusBadRequest, animalstore.InvalidParameter)
	}
	s.do(t, call{path: "/v1/photos?petId=1&cursor=x"}).want(t, http.StatusBadRequest, animalstore.InvalidCursor)
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
	if got, err := s.db.Photos(t.Context(), db.PhotoQuery{PetIDs: []int64{pet}, Limit: 10}); err != nil || len(got) != 0 {
		t.Errorf("got photos %+v, %v, want none of what was refused", got, err)
	}
	s.do(t, upload(pet, "image/jpeg", smallJPEG)).want(t, http.StatusCreated, "") // there is space for a small one
	s.do(t, call{method: "POST", path: "/v1/pets", body: `{"name":"Max","categoryId":1}`}).want(t, http.StatusCreated, "")
}

// TestImageHeaders: nothing that was uploaded can run, and images are kept for good.
func TestImageHeaders(t *testing.T) {
	s := start(t)
	pet := s.add(t, animalstore.NewPet{Name: "Rex"})[0].ID
	const script = "<script>alert(1)</script>"
	polyglot := phototest.InsertSegment([]byte(smallJPEG), 0xfe, []byte("*/=1;"+script+"/*"))
	p := decodePhoto(t, s.do(t, upload(pet, "image/jpeg", string(polyglot)+script)))
	for _, rest := range []string{"/image", "/thumbnail"} {
		path := fmt.Sprint("/v1/photos/", p.ID, rest)
		got := s.do(t, call{path: path})
		if bytes.Contains(got.body, []byte("script")) || bytes.Equal(got.body, polyglot) {
			t.Errorf("%s contains what was uploaded", rest)
		}
		tag := got.header.Get("Etag")
		same := s.do(t, call{path: path, header: http.Header{"If-None-Match": {tag}}})
		same.want(t, http.StatusNotModified, "")
		head := s.do(t, call{method: "HEAD", path: path})
		head.want(t, http.StatusOK, "")
		if head.header.Get("Content-Length") != fmt.Sprint(len(got.body)) {
			t.Errorf("HEAD %s: got length %q, want %d", rest, head.header.Get("Content-Length"), len(got.body))
		}
		for name, want := range map[string]string{
			"Content-Type": "image/jpeg", "X-Content-Type-Options": "nosniff", "Content-Disposition": "inline", "Etag": tag,
			"Content-Security-Policy": "default-src 'none'; sandbox", "Cache-Control": "private, max-age=31536000, immutable",
		} {
			for _, r := range []response{got, same, head} {
				if got := r.header.Get(name); got != want && (name != "Content-Type" || r.status == http.StatusOK) {
					t.Errorf("%s, status %d: got %s %q, want %q", rest, r.status, name, got, want)
				}
			}
		}
		s.do(t, call{path: path, header: http.Header{"If-Match": {`"other"`}}}).want(t, http.StatusPreconditionFailed, animalstore.PreconditionFailed)
	}
	// A store that was restored from a backup may assign an id again.
	var tags []string
	for range 2 {
		restored := start(t)
		restored.clock.advance(time.Duration(len(tags)) * time.Hour)
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
// meanwhile doesn't look whole.
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

// TestPhotoIdempotency: a retried upload is one photo, and the same picture of another pet
// is another.
func TestPhotoIdempotency(t *testing.T) {
	s := start(t)
	pets := s.add(t, animalstore.NewPet{Name: "Rex"}, animalstore.NewPet{Name: "Mia"})
	send := func(petID int64, body string) response {
		c := upload(petID, "image/jpeg", body)
		c.header.Set("Idempotency-Key", "token")
		return s.do(t, c)
	}
	first := send(pets[0].ID, smallJPEG)
	first.want(t, http.StatusCreated, "")
	again := send(pets[0].ID, smallJPEG)
	if again.want(t, http.StatusCreated, ""); !bytes.Equal(again.body, first.body) || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("got %v, replayed %q, want the first response: %v", again, again.header.Get("Idempotent-Replayed"), first)
	}
	send(pets[0].ID, string(phototest.JPEG(phototest.Drawing(10, 10)))).want(t, http.StatusUnprocessableEntity, animalstore.IdempotencyKeyReused)
	if other := decodePhoto(t, send(pets[1].ID, smallJPEG)); other.PetID != pets[1].ID {
		t.Errorf("got a photo of pet %d, want one of pet %d", other.PetID, pets[1].ID)
	}
}

// TestPhotoEvents: a photo's events can be read by every key that reads the store.
func TestPhotoEvents(t *testing.T) {
	s := start(t)
	pet := s.add(t, animalstore.NewPet{Name: "Rex"})[0].ID
	created := s.do(t, upload(pet, "image/jpeg", smallJPEG))
	p := decodePhoto(t, created)
	s.do(t, call{method: "DELETE", path: fmt.Sprint("/v1/pets/", pet)}).want(t, http.StatusNoContent, "")
	var events []animalstore.Event
	for after := int64(0); len(events) < 2; after = events[len(events)-1].ID {
		got := s.do(t, call{path: fmt.Sprintf("/v1/events?type=photo.*&wait=30&after=%d&subject=photo/%d", after, p.ID)})
		var more []animalstore.Event
		if err := json.Unmarshal(got.body, &more); err != nil || len(more) == 0 {
			t.Fatalf("got %v, want two events", got)
		}
		events = append(events, more...)
	}
	for i, want := range []animalstore.EventType{animalstore.PhotoCreated, animalstore.PhotoDeleted} {
		if e := events[i]; e.Type != want || e.Subject != fmt.Sprint("photo/", p.ID) || string(e.Data) != strings.TrimSpace(string(created.body)) {
			t.Errorf("got %s of %s with %s, want %s with %s", e.Type, e.Subject, e.Data, want, created.body)
		}
	}
}

// TestBadUploads: every bad upload is refused with 400, and nothing of it is stored.
// Package photo has tests of how long that takes and how much memory.
func TestBadUploads(t *testing.T) {
	sqliteOnly(t, "bad uploads never reach the database")
	testenv.Slow(t)
	t.Parallel()
	s := start(t)
	pet := s.add(t, animalstore.NewPet{Name: "Rex"})[0].ID
	for _, u := range phototest.Bad(testenv.Count(70, 2000), 7) {
		c := upload(pet, u.ContentType, string(u.Data))
		c.bad = true
		if got := s.do(t, c); got.status != http.StatusBadRequest || got.code() != animalstore.InvalidImage {
			t.Errorf("%s: got %v, want 400 invalid_image", u.Name, got)
		}
	}
	if all, err := s.db.Photos(t.Context(), db.PhotoQuery{PetIDs: []int64{pet}, Limit: 10}); err != nil || len(all) != 0 {
		t.Errorf("got photos %+v, %v, want none", all, err)
	}
}
