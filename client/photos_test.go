package client_test

import (
	"bytes"
	"errors"
	"image"
	_ "image/jpeg"
	"net/http"
	"sync/atomic"
	"testing"

	"animalstore"
	"animalstore/client"
	"animalstore/client/clienttest"
	"animalstore/internal/photo/phototest"
)

// TestPhotos: pictures of every format are sent with their type, and come back as images.
func TestPhotos(t *testing.T) {
	c, ctx := clienttest.New(t).Client, t.Context()
	pet := add(t, c, "Rex")
	img := phototest.Drawing(640, 480)
	for name, picture := range map[string][]byte{"JPEG": phototest.JPEG(img), "PNG": phototest.PNG(img), "WebP": phototest.WebP(640, 480, phototest.Grey)} {
		photo, err := c.AddPhoto(ctx, pet.ID, bytes.NewReader(picture))
		if err != nil || photo.PetID != pet.ID || photo.Width != 640 || photo.Height != 480 || photo.CreatedAt.IsZero() {
			t.Fatalf("%s: got %+v, %v, want a photo of 640 × 480", name, photo, err)
		}
		whole, err := c.GetImage(ctx, photo.ID)
		if err != nil || whole.ContentType != photo.ContentType || int64(len(whole.Data)) != photo.Bytes {
			t.Errorf("%s: got %s of %d bytes, %v, want %s of %d", name, whole.ContentType, len(whole.Data), err, photo.ContentType, photo.Bytes)
		}
		small, err := c.GetThumbnail(ctx, photo.ID)
		if err != nil {
			t.Fatal(err)
		}
		if config, _, err := image.DecodeConfig(bytes.NewReader(small.Data)); err != nil || config.Width != 320 || config.Height != 240 {
			t.Errorf("%s: got a thumbnail of %d × %d, %v, want 320 × 240", name, config.Width, config.Height, err)
		}
	}
}

// TestPhotoErrors: what can't be a photo is an error with its code, and an image that the
// caller has already isn't sent again.
func TestPhotoErrors(t *testing.T) {
	c, ctx := clienttest.New(t).Client, t.Context()
	pet := add(t, c, "Rex")
	for code, content := range map[animalstore.Code]string{
		animalstore.UnsupportedMediaType: "GIF89a",
		animalstore.InvalidImage:         "\xff\xd8\xff",
		animalstore.PayloadTooLarge:      string(make([]byte, animalstore.MaxUpload+1)),
	} {
		_, err := c.AddPhoto(ctx, pet.ID, bytes.NewReader([]byte(content)))
		wantCode(t, err, code)
	}
	_, err := c.GetImage(ctx, 99)
	wantCode(t, err, animalstore.PhotoNotFound)
	photo, err := c.AddPhoto(ctx, pet.ID, bytes.NewReader(phototest.JPEG(phototest.Drawing(30, 20))))
	if err != nil {
		t.Fatal(err)
	}
	var meta client.Meta
	if _, err := c.GetImage(ctx, photo.ID, client.ReadMeta(&meta)); err != nil || meta.ETag == "" {
		t.Fatalf("got %v, tag %q", err, meta.ETag)
	}
	if _, err := c.GetImage(ctx, photo.ID, client.IfNoneMatch(meta.ETag)); !errors.Is(err, client.ErrNotModified) {
		t.Errorf("got %v, want ErrNotModified", err)
	}
}

// TestPhotoIsAddedOnce: a retried upload sends the same bytes again, under the same key.
func TestPhotoIsAddedOnce(t *testing.T) {
	var failed atomic.Bool
	store := clienttest.New(t, clienttest.WithMiddleware(func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost && r.URL.Path == "/v1/pets/1/photos" && failed.CompareAndSwap(false, true) {
				h.ServeHTTP(discard{http.Header{}}, r)
				panic(http.ErrAbortHandler) // the response is lost
			}
			h.ServeHTTP(w, r)
		})
	}))
	c, ctx := store.Client, t.Context()
	pet := add(t, c, "Rex")
	var meta client.Meta
	if _, err := c.AddPhoto(ctx, pet.ID, bytes.NewReader(phototest.JPEG(phototest.Drawing(30, 20))), client.ReadMeta(&meta)); err != nil || !meta.Replayed {
		t.Errorf("got %v, replayed %t, want the response that was lost", err, meta.Replayed)
	}
	n := 0
	for _, err := range c.ListPhotos(ctx, client.PhotoQuery{PetIDs: []int64{pet.ID}}) {
		if n++; err != nil {
			t.Fatal(err)
		}
	}
	if n != 1 {
		t.Errorf("the pet has %d photos, want 1", n)
	}
}

// discard is a response that nobody receives.
type discard struct{ header http.Header }

func (d discard) Header() http.Header       { return d.header }
func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) WriteHeader(int)             {}
