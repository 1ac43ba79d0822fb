package photo

import (
	"context"
	"errors"
	"image"
	"image/color"
	"io"
	"slices"
	"strings"
	"testing"

	"animalstore"
	"animalstore/internal/photo/phototest"
)

func wantInvalid(t *testing.T, err error, says string) {
	t.Helper()
	var coded *animalstore.Error
	if !errors.As(err, &coded) || coded.Code != animalstore.InvalidImage || !strings.Contains(coded.Message, says) {
		t.Errorf("got %v, want invalid_image with %q", err, says)
	}
}

// TestPixels: a picture of 24 megapixels is accepted, and one with another row isn't,
// however little memory its decoder takes.
func TestPixels(t *testing.T) {
	grey := func(height uint32) []byte {
		return append(phototest.PNGHeader(6000, height, 8, 0, 0), phototest.Zeros(int(height)*6001)...)
	}
	process(t, "image/png", grey(4000))
	_, err := inspectAndProcess(t.Context(), grey(4001), "image/png")
	wantInvalid(t, err, "at most 24 megapixels, not 6000 × 4001")
}

// TestAnimated: an animated WebP picture is refused for what it is, not as damaged.
func TestAnimated(t *testing.T) {
	all := phototest.Bad(100, 1)
	i := slices.IndexFunc(all, func(u phototest.Upload) bool { return u.Name == "animated WebP" })
	_, err := inspectAndProcess(t.Context(), all[i].Data, all[i].ContentType)
	wantInvalid(t, err, "send a still picture")
}

// TestDecoderPanics: a decoder that panics makes a picture invalid.
func TestDecoderPanics(t *testing.T) {
	panics := &format{name: "JPEG", decode: func(io.Reader) (image.Image, error) { panic("index out of range") }}
	_, err := decodeSmall(t.Context(), nil, &Header{format: panics})
	wantInvalid(t, err, "cannot be decoded")
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

// TestWebPMetadata: the metadata of a WebP picture turns it upright, and isn't kept.
func TestWebPMetadata(t *testing.T) {
	const secret = "51.4779N 0.0015W Kodak 0012345"
	canvas := []byte{0x20 | 0x08 | 0x04, 0, 0, 0, 59, 0, 0, 39, 0, 0} // with a profile, EXIF and XMP
	file := phototest.RIFF("VP8X", canvas)
	picture := phototest.WebP(60, 40, color.NRGBA{10, 200, 30, 255})[12:]
	for _, chunk := range [][]byte{
		phototest.RIFF("ICCP", []byte(secret))[12:], picture, phototest.RIFF("EXIF", phototest.EXIF(6, secret)[6:])[12:], phototest.RIFF("XMP ", []byte(secret))[12:],
	} {
		file = append(file, chunk...)
	}
	p := process(t, "image/webp", phototest.Resize(file))
	if p.Width != 40 || p.Height != 60 {
		t.Errorf("got %d × %d, want 40 × 60: it lies on its side", p.Width, p.Height)
	}
	for name, kept := range map[string][]byte{"image": p.Image, "thumbnail": p.Thumbnail} {
		for _, word := range []string{secret, "Kodak", "EXIF", "ICCP", "XMP"} {
			if strings.Contains(string(kept), word) {
				t.Errorf("the %s contains %q", name, word)
			}
		}
	}
}
