package photo

import (
	"bytes"
	"encoding/binary"
	"image"

	"github.com/bep/imagemeta"
)

// orientation reads how a camera was held: a value of the EXIF tag Orientation, from 1 to
// 8. It is 1, which means upright, if the picture doesn't say or can't be understood.
func orientation(data []byte, f *format) int {
	kind := map[string]imagemeta.ImageFormat{"JPEG": imagemeta.JPEG, "PNG": imagemeta.PNG, "WebP": imagemeta.TIFF}[f.name]
	if kind == imagemeta.TIFF {
		data = webpEXIF(data)
	}
	found := 1
	_, err := imagemeta.Decode(imagemeta.Options{
		R:           bytes.NewReader(data),
		ImageFormat: kind,
		Sources:     imagemeta.EXIF,
		ShouldHandleTag: func(tag imagemeta.TagInfo) bool {
			return tag.Namespace == "IFD0" && tag.Tag == "Orientation"
		},
		HandleTag: func(tag imagemeta.TagInfo) error {
			if v, ok := tag.Value.(uint16); ok && 1 <= v && v <= 8 {
				found = int(v)
			}
			return imagemeta.ErrStopWalking
		},
	})
	if err != nil {
		return 1
	}
	return found
}

// webpEXIF returns the EXIF data of a WebP picture, which has the format of a TIFF file, or
// nil if there is none. Package imagemeta would miss it after a chunk of odd length.
func webpEXIF(data []byte) []byte {
	for rest := data[12:]; len(rest) >= 8; {
		name, size := string(rest[:4]), int64(binary.LittleEndian.Uint32(rest[4:]))
		rest = rest[8:]
		if size > int64(len(rest)) {
			return nil
		}
		if name == "EXIF" {
			return bytes.TrimPrefix(rest[:size], []byte("Exif\x00\x00")) // some programs write it, as in a JPEG
		}
		rest = rest[min(size+size%2, int64(len(rest))):] // chunks are padded to an even length
	}
	return nil
}

// upright turns a picture with the given orientation.
func upright(img *image.RGBA, orientation int) *image.RGBA {
	if orientation == 1 {
		return img
	}
	w, h := img.Rect.Dx(), img.Rect.Dy()
	turned := image.NewRGBA(image.Rect(0, 0, w, h))
	if orientation >= 5 { // lies on its side
		turned = image.NewRGBA(image.Rect(0, 0, h, w))
	}
	for y := range turned.Rect.Dy() {
		for x := range turned.Rect.Dx() {
			fromX, fromY := x, y
			switch orientation {
			case 2: // mirrored
				fromX = w - 1 - x
			case 3: // upside down
				fromX, fromY = w-1-x, h-1-y
			case 4:
				fromY = h - 1 - y
			case 5:
				fromX, fromY = y, x
			case 6: // its top is on the right
				fromX, fromY = y, h-1-x
			case 7:
				fromX, fromY = w-1-y, h-1-x
			case 8: // its top is on the left
				fromX, fromY = w-1-y, x
			}
			copy(turned.Pix[turned.PixOffset(x, y):][:4], img.Pix[img.PixOffset(fromX, fromY):][:4])
		}
	}
	return turned
}
