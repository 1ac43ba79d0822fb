// Package photo turns uploaded pictures into the ones that the store keeps: upright, small
// enough, without metadata, and never the bytes that were sent.
package photo

import (
	"bytes"
	"context"
	"image"
	"image/jpeg"
	"image/png"
	"io"
	"runtime"
	"runtime/debug"

	"animalstore"

	"golang.org/x/image/webp"
)

// What is stored of a picture.
const (
	MaxSide          = 1600 // pixels on the long side
	MaxThumbnailSide = 320

	quality = 82 // of JPEG
)

// Picture is what is stored of an upload.
type Picture struct {
	ContentType   string // image/jpeg, or image/png if it has transparency; also of Thumbnail
	Width, Height int
	Image         []byte
	Thumbnail     []byte
}

// Process decodes an upload whose header [Inspect] has accepted, and renders the picture to
// store. Errors with the code invalid_image are for the client; the only other one is that
// of ctx.
//
// Process may use MaxMemory and some 50 MiB, so callers limit how many run at once.
func Process(ctx context.Context, data []byte, header *Header) (*Picture, error) {
	small, err := decodeSmall(ctx, data, header)
	if err != nil {
		return nil, err
	}
	if header.memory > collectAbove {
		runtime.GC() // frees the decoder's memory before the scaler allocates its own
	}
	small = upright(shrink(small, MaxSide), orientation(data, header.format))
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return FromImage(small), nil
}

// collectAbove is the size from which the memory of a decoder is collected at once, in
// bytes. Left to the collector's own pace, the garbage of several pictures would add up.
const collectAbove = 32 << 20

// decodeSmall decodes a picture and halves it until it is less than twice as large as the
// stored picture. The full-size picture is garbage when it returns.
func decodeSmall(ctx context.Context, data []byte, header *Header) (small *image.RGBA, err error) {
	defer func() {
		if recover() != nil { // a picture that its decoder doesn't expect
			err = damaged(header.format)
		}
	}()
	if header.memory > collectAbove {
		debug.FreeOSMemory() // the heap has to grow for a large picture, because its free memory is fragmented
	}
	full, err := header.format.decode(&contextReader{ctx: ctx, data: bytes.NewReader(data)})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, damaged(header.format)
	}
	return halve(full, MaxSide), nil
}

// contextReader ends a decoder's work with its context: a few kilobytes can take a decoder
// much longer than a deadline.
type contextReader struct {
	ctx  context.Context
	data *bytes.Reader
}

func (r *contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.data.Read(p)
}

// format is a format that uploads may have.
type format struct {
	name        string
	contentType string
	inspect     func(data []byte) (*Header, error)
	decode      func(io.Reader) (image.Image, error)
}

var formats = []*format{
	{"JPEG", "image/jpeg", inspectJPEG, jpeg.Decode},
	{"PNG", "image/png", inspectPNG, png.Decode},
	{"WebP", "image/webp", inspectWebP, webp.Decode},
}

// ContentTypes are the media types that uploads may have.
var ContentTypes = []string{"image/jpeg", "image/png", "image/webp"}

// FromImage encodes img, already scaled and with its origin at (0, 0), for storage.
func FromImage(img *image.RGBA) *Picture {
	p := &Picture{ContentType: "image/jpeg", Width: img.Rect.Dx(), Height: img.Rect.Dy()}
	if !img.Opaque() {
		p.ContentType = "image/png"
	}
	p.Image = encodeAs(p.ContentType, img, quality)
	p.Thumbnail = thumbnail(p.ContentType, img)
	return p
}

// encodeAs returns the bytes of a picture, with this quality if it is JPEG. Neither encoder
// writes metadata. Both fail only on sizes that a stored picture can't have.
func encodeAs(contentType string, img *image.RGBA, quality int) []byte {
	var b bytes.Buffer
	var err error
	if contentType == "image/png" {
		err = (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&b, img)
	} else {
		err = jpeg.Encode(&b, img, &jpeg.Options{Quality: quality})
	}
	if err != nil {
		panic(err)
	}
	return b.Bytes()
}

func damaged(f *format) error {
	return invalid("the picture is damaged or incomplete: its %s data cannot be decoded", f.name)
}

func invalid(message string, args ...any) error {
	return animalstore.Errorf(animalstore.InvalidImage, message, args...)
}
