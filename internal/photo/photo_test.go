package photo

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"animalstore"
	"animalstore/internal/photo/phototest"
	"animalstore/internal/testenv"
)

func inspectAndProcess(ctx context.Context, data []byte, contentType string) (*Picture, error) {
	header, err := Inspect(data, contentType)
	if err != nil {
		return nil, err
	}
	return Process(ctx, data, header)
}

func process(t *testing.T, contentType string, data []byte) *Picture {
	t.Helper()
	p, err := inspectAndProcess(t.Context(), data, contentType)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func decoded(t *testing.T, contentType string, data []byte) image.Image {
	t.Helper()
	decode := jpeg.Decode
	if contentType == "image/png" {
		decode = png.Decode
	}
	img, err := decode(bytes.NewReader(data))
	if err != nil {
		t.Fatalf("what is kept can't be decoded: %v", err)
	}
	return img
}

// TestSizes: a picture is shrunk to fit, keeps its proportions, and is never enlarged.
func TestSizes(t *testing.T) {
	for _, c := range []struct{ w, h, wantW, wantH, thumbW, thumbH int }{
		{1, 1, 1, 1, 1, 1},
		{320, 200, 320, 200, 320, 200},
		{1600, 40, 1600, 40, 320, 8},
		{1601, 20, 1600, 20, 320, 4},
		{3000, 16, 1600, 9, 320, 2},
		{50, 2000, 40, 1600, 8, 320},
		{30_000, 7, 1600, 1, 320, 1},
		{3, 30_000, 1, 1600, 1, 320},
	} {
		p := process(t, "image/jpeg", phototest.JPEG(phototest.Drawing(c.w, c.h)))
		got := decoded(t, p.ContentType, p.Image).Bounds().Size()
		if p.ContentType != "image/jpeg" || got != image.Pt(c.wantW, c.wantH) || got != image.Pt(p.Width, p.Height) {
			t.Errorf("%d × %d: got %s of %v, said %d × %d; want image/jpeg of %d × %d", c.w, c.h, p.ContentType, got, p.Width, p.Height, c.wantW, c.wantH)
		}
		if got := decoded(t, p.ContentType, p.Thumbnail).Bounds().Size(); got != image.Pt(c.thumbW, c.thumbH) {
			t.Errorf("%d × %d: thumbnail of %v, want %d × %d", c.w, c.h, got, c.thumbW, c.thumbH)
		}
	}
}

// corners returns the colours of the four corners, clockwise from the top left.
func corners(img image.Image) (all [4]color.RGBA) {
	b := img.Bounds()
	for i, at := range []image.Point{{1, 1}, {3, 1}, {3, 3}, {1, 3}} {
		r, g, b, a := img.At(b.Min.X+b.Dx()*at.X/4, b.Min.Y+b.Dy()*at.Y/4).RGBA()
		all[i] = color.RGBA{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8), uint8(a >> 8)}
	}
	return all
}

func similar(a, b [4]color.RGBA) bool {
	near := func(a, b uint8) bool { return max(a, b)-min(a, b) < 12 }
	for i := range a {
		if !near(a[i].R, b[i].R) || !near(a[i].G, b[i].G) || !near(a[i].B, b[i].B) || !near(a[i].A, b[i].A) {
			return false
		}
	}
	return true
}

// TestOrientation: all eight orientations come out upright, in each format.
func TestOrientation(t *testing.T) {
	// Where the corners of the upright picture are in the one that the camera stored.
	stored := [9][4]int{1: {0, 1, 2, 3}, 2: {1, 0, 3, 2}, 3: {2, 3, 0, 1}, 4: {3, 2, 1, 0}, 5: {0, 3, 2, 1}, 6: {1, 2, 3, 0}, 7: {2, 1, 0, 3}, 8: {3, 0, 1, 2}}
	for orientation := 1; orientation <= 8; orientation++ {
		w, h := 60, 40
		if orientation >= 5 {
			w, h = h, w
		}
		img := phototest.Drawing(w, h)
		for y := range h {
			for x := range w {
				for corner, c := range phototest.Corners {
					if img.RGBAAt(x, y) == c {
						img.SetRGBA(x, y, phototest.Corners[stored[orientation][corner]])
						break
					}
				}
			}
		}
		exif := phototest.EXIF(orientation, "x")
		for contentType, data := range map[string][]byte{
			"image/jpeg": phototest.InsertSegment(phototest.JPEG(img), 0xe1, exif),
			"image/png":  phototest.InsertChunk(phototest.PNG(img), "eXIf", exif[6:]),
		} {
			p := process(t, contentType, data)
			if got := decoded(t, p.ContentType, p.Image); p.Width != 60 || p.Height != 40 || !similar(corners(got), phototest.Corners) {
				t.Errorf("orientation %d in %s: got %d × %d with corners %v, want 60 × 40 with %v", orientation, contentType, p.Width, p.Height, corners(got), phototest.Corners)
			}
		}
	}
}

// TestTransparency: only a picture with transparency is kept as PNG.
func TestTransparency(t *testing.T) {
	img := phototest.Drawing(700, 200)
	if p := process(t, "image/png", phototest.PNG(img)); p.ContentType != "image/jpeg" {
		t.Errorf("an opaque PNG is kept as %s, want image/jpeg", p.ContentType)
	}
	for x := range 100 {
		for y := range 100 {
			img.SetRGBA(x, y, color.RGBA{})
		}
	}
	p := process(t, "image/png", phototest.PNG(img))
	for name, data := range map[string][]byte{"image": p.Image, "thumbnail": p.Thumbnail} {
		if _, _, _, a := decoded(t, "image/png", data).At(5, 5).RGBA(); p.ContentType != "image/png" || a != 0 {
			t.Errorf("%s: kept as %s with opacity %d, want a transparent image/png", name, p.ContentType, a)
		}
	}
	p = process(t, "image/webp", phototest.WebP(50, 30, color.NRGBA{200, 100, 50, 128}))
	if r, _, _, a := decoded(t, "image/png", p.Image).At(5, 5).RGBA(); p.ContentType != "image/png" || a>>8 != 128 || r>>8 != 100 {
		t.Errorf("WebP: kept as %s with red %d and opacity %d, want image/png with 100 and 128", p.ContentType, r>>8, a>>8)
	}
}

// TestKinds: every kind of picture that the decoders know is accepted.
func TestKinds(t *testing.T) {
	gray := image.NewGray(image.Rect(0, 0, 40, 30))
	wide := image.NewRGBA64(image.Rect(0, 0, 4000, 20))
	palette := image.NewPaletted(image.Rect(0, 0, 40, 30), color.Palette{color.Black, color.White})
	for name, c := range map[string]struct {
		contentType string
		data        []byte
	}{
		"grey JPEG":          {"image/jpeg", phototest.JPEG(gray)},
		"grey PNG":           {"image/png", phototest.PNG(gray)},
		"PNG with 16 bits":   {"image/png", phototest.PNG(wide)},
		"PNG with a palette": {"image/png", phototest.PNG(palette)},
		"WebP":               {"image/webp", phototest.WebP(40, 30, color.NRGBA{1, 2, 3, 255})},
		"progressive JPEG":   {"image/jpeg", phototest.Progressive(320, 240, 9)},
	} {
		t.Run(name, func(t *testing.T) { process(t, c.contentType, c.data) })
	}
}

// TestNoMetadata: nothing in an upload except its pixels is kept.
func TestNoMetadata(t *testing.T) {
	const secret = "51.4779N 0.0015W Kodak 0012345"
	img := phototest.Drawing(200, 100)
	file := phototest.JPEG(img)
	for _, s := range []struct {
		marker byte
		prefix string
	}{
		{0xe1, string(phototest.EXIF(1, secret))}, {0xe1, "http://ns.adobe.com/xap/1.0/\x00"}, {0xe2, "ICC_PROFILE\x00\x01\x01"},
		{0xed, "Photoshop 3.0\x00"}, {0xfe, ""}, {0xe5, ""},
	} {
		file = phototest.InsertSegment(file, s.marker, []byte(s.prefix+secret))
	}
	inJPEG := append(file, secret...) // and after the end
	inPNG := phototest.PNG(img)
	for name, prefix := range map[string]string{"tEXt": "Comment\x00", "iTXt": "XML:com.adobe.xmp\x00\x00\x00\x00\x00", "zTXt": "Comment\x00\x00", "eXIf": "II*\x00", "prVt": ""} {
		inPNG = phototest.InsertChunk(inPNG, name, []byte(prefix+secret))
	}
	inWebP := phototest.RIFF("VP8X", []byte{0x20 | 0x08 | 0x04, 0, 0, 0, 59, 0, 0, 39, 0, 0}) // with a profile, EXIF and XMP
	for _, chunk := range [][]byte{
		phototest.RIFF("ICCP", []byte(secret)), phototest.WebP(60, 40, color.NRGBA{10, 200, 30, 255}), phototest.RIFF("EXIF", phototest.EXIF(6, secret)[6:]), phototest.RIFF("XMP ", []byte(secret)),
	} {
		inWebP = append(inWebP, chunk[12:]...)
	}
	clear := image.NewNRGBA(img.Rect) // kept as PNG
	for contentType, data := range map[string][]byte{
		"image/jpeg": inJPEG,
		"image/png":  append(inPNG, secret...),
		"image/webp": phototest.Resize(inWebP),
		"image/png ": phototest.InsertChunk(phototest.PNG(clear), "tEXt", []byte("Comment\x00"+secret)),
	} {
		p := process(t, strings.TrimSpace(contentType), data)
		for kept, b := range map[string][]byte{"image": p.Image, "thumbnail": p.Thumbnail} {
			for _, word := range []string{secret, "Kodak", "Exif", "ICC_PROFILE", "Photoshop", "adobe", "tEXt", "iTXt", "zTXt", "eXIf", "EXIF", "ICCP", "XMP"} {
				if bytes.Contains(b, []byte(word)) {
					t.Errorf("the %s of a %s upload contains %q", kept, contentType, word)
				}
			}
		}
	}
}

// TestBad: every bad upload is refused for its content.
func TestBad(t *testing.T) {
	for _, u := range phototest.Bad(testenv.Count(120, 2000), 1) {
		_, err := inspectAndProcess(t.Context(), u.Data, u.ContentType)
		wantInvalid(t, u.Name, err)
	}
}

// TestDeadline: decoding ends with the context.
func TestDeadline(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := inspectAndProcess(ctx, phototest.JPEG(phototest.Drawing(300, 200)), "image/jpeg"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

// FuzzProcess: no upload makes a decoder fail in another way than with invalid_image.
func FuzzProcess(f *testing.F) {
	img := phototest.Drawing(20, 10)
	f.Add("image/jpeg", phototest.InsertSegment(phototest.JPEG(img), 0xe1, phototest.EXIF(6, "x")))
	f.Add("image/jpeg", phototest.Progressive(64, 64, 3))
	f.Add("image/png", phototest.PNG(img))
	f.Add("image/webp", phototest.WebP(20, 10, color.NRGBA{1, 2, 3, 255}))
	f.Fuzz(func(t *testing.T, contentType string, data []byte) {
		if h, err := Inspect(data, contentType); err == nil && h.Width*h.Height > 50_000 {
			return // takes the fuzzer too long
		}
		p, err := inspectAndProcess(t.Context(), data, contentType)
		var coded *animalstore.Error
		switch {
		case err == nil:
			decoded(t, p.ContentType, p.Image)
			decoded(t, p.ContentType, p.Thumbnail)
		case !errors.As(err, &coded) || coded.Code != animalstore.InvalidImage:
			t.Fatalf("got %v, want a picture or invalid_image", err)
		}
	})
}
