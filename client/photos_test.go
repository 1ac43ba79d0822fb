package client_test

import (
	"bytes"
	"image"
	_ "image/jpeg"
	"testing"

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
