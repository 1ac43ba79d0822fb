package photo

import (
	"context"
	"errors"
	"image"
	"image/color"
	"io"
	"testing"

	"animalstore"
	"animalstore/internal/photo/phototest"
)

func wantInvalid(t *testing.T, what string, err error) {
	t.Helper()
	var coded *animalstore.Error
	if !errors.As(err, &coded) || coded.Code != animalstore.InvalidImage {
		t.Errorf("%s: got %v, want invalid_image", what, err)
	}
}

// TestPixels: 24 megapixels are accepted, and another row isn't, which the header tells.
func TestPixels(t *testing.T) {
	if _, err := Inspect(phototest.PNGHeader(6000, 4000, 8, 0, 0), "image/png"); err != nil {
		t.Errorf("6000 × 4000: got %v", err)
	}
	_, err := Inspect(phototest.PNGHeader(6000, 4001, 8, 0, 0), "image/png")
	wantInvalid(t, "6000 × 4001", err)
}

// TestDecoderPanics: a decoder that panics makes a picture invalid.
func TestDecoderPanics(t *testing.T) {
	panics := &format{name: "JPEG", decode: func(io.Reader) (image.Image, error) { panic("index out of range") }}
	_, err := decodeSmall(t.Context(), nil, &Header{format: panics})
	wantInvalid(t, "a decoder that panics", err)
}

// TestDecoderStops: a decoder gets no more data once the context has ended.
func TestDecoderStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	read := 0
	slow := &format{name: "JPEG", decode: func(r io.Reader) (image.Image, error) {
		for piece := make([]byte, 1); ; read++ {
			if _, err := r.Read(piece); err != nil {
				return nil, err
			}
			if read == 10 {
				cancel()
			}
		}
	}}
	if _, err := decodeSmall(ctx, make([]byte, 1000), &Header{format: slow}); !errors.Is(err, context.Canceled) || read != 11 {
		t.Errorf("got %v after %d bytes, want %v after 11", err, read, context.Canceled)
	}
}

// TestWebPOrientation: a WebP picture is turned upright with any lengths of the chunks
// before its EXIF data are, and if that begins as in a JPEG.
func TestWebPOrientation(t *testing.T) {
	picture := phototest.WebP(60, 40, color.NRGBA{10, 200, 30, 255})[12:]
	for profile := range 3 {
		for _, start := range []int{0, 6} {
			file := phototest.RIFF("VP8X", []byte{0x20 | 0x08, 0, 0, 0, 59, 0, 0, 39, 0, 0})
			for _, chunk := range [][]byte{phototest.RIFF("ICCP", make([]byte, profile)), phototest.RIFF("odd!", []byte{1}), phototest.RIFF("EXIF", phototest.EXIF(6, "")[start:])} {
				file = append(file, chunk[12:]...)
			}
			if p := process(t, "image/webp", phototest.Resize(append(file, picture...))); p.Width != 40 || p.Height != 60 {
				t.Errorf("a profile of %d bytes, EXIF from %d: got %d × %d, want 40 × 60", profile, start, p.Width, p.Height)
			}
		}
	}
}
