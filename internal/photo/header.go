package photo

import (
	"bytes"
	"encoding/binary"
	"image/png"

	"golang.org/x/image/webp"
)

// Limits of an upload, other than its size in bytes.
const (
	MaxPixels = 24_000_000
	MaxMemory = 256 << 20 // of its decoder, in bytes
)

// Header is what an upload says about itself before its pixels.
type Header struct {
	Width, Height int

	format *format
	memory int64 // that decoding takes at most, in bytes
}

// Inspect reads the header of an upload and returns an error for the client if it isn't of
// this type or is too large to decode. It takes no more memory than the upload.
func Inspect(data []byte, contentType string) (*Header, error) {
	for _, f := range formats {
		if f.contentType != contentType {
			continue
		}
		if actual := detect(data); actual != contentType {
			return nil, mislabelled(f, actual)
		}
		h, err := f.inspect(data)
		if err != nil {
			return nil, err
		}
		h.format = f
		return h, h.check()
	}
	return nil, invalid("the picture must be JPEG, PNG or WebP")
}

// detect returns the content type of a supported format, or "".
func detect(data []byte) string {
	switch {
	case bytes.HasPrefix(data, []byte("\xff\xd8")):
		return "image/jpeg"
	case bytes.HasPrefix(data, []byte("\x89PNG\r\n\x1a\n")):
		return "image/png"
	case len(data) >= 12 && string(data[:4]) == "RIFF" && string(data[8:12]) == "WEBP":
		return "image/webp"
	}
	return ""
}

func mislabelled(want *format, actual string) error {
	if actual == "" {
		return invalid("the body is not a %s picture, although its Content-Type is %s: send a JPEG, PNG or WebP file with its own type", want.name, want.contentType)
	}
	return invalid("the body is not a %s picture: send it with Content-Type: %s", want.name, actual)
}

func (h *Header) check() error {
	switch pixels := int64(h.Width) * int64(h.Height); {
	case h.Width < 1 || h.Height < 1:
		return invalid("the picture has no pixels")
	case pixels > MaxPixels:
		return invalid("the picture is too large: send at most %d megapixels", MaxPixels/1_000_000)
	case h.memory > MaxMemory:
		return invalid("decoding the picture would take %d MiB of memory, more than %d: make it smaller, or save it with 8 bits a channel, neither progressive nor interlaced", h.memory>>20, MaxMemory>>20)
	}
	return nil
}

func broken(format string) error {
	return invalid("the picture is damaged or incomplete: its %s header cannot be read", format)
}

// inspectPNG estimates what image/png allocates: the picture, as much again for the
// passes of an interlaced one, and two rows. A row can be as large as the picture.
func inspectPNG(data []byte) (*Header, error) {
	config, err := png.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return nil, broken("PNG")
	}
	// DecodeConfig has checked that there is an IHDR.
	depth, colour, interlaced := int64(data[24]), data[25], data[28] != 0
	pixel := int64(4)
	if depth == 16 {
		pixel = 8
	}
	channels := map[byte]int64{0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour]
	width, pixels := int64(config.Width), int64(config.Width)*int64(config.Height)
	memory := pixels * pixel
	if interlaced {
		memory *= 2
	}
	return &Header{Width: config.Width, Height: config.Height, memory: memory + 2*(1+(width*depth*channels+7)/8)}, nil
}

// Chunks of a WebP file.
const (
	webpAnimation = "ANIM"
	webpAlpha     = "ALPH"
	webpLossless  = "VP8L"
	webpLossy     = "VP8 "
)

// losslessMemory is what lossless data takes in addition to its pixels: at most 2,600 groups of
// Huffman trees.
const losslessMemory = 128 << 20

// inspectWebP estimates what package webp allocates. Lossless data takes 4 bytes a pixel,
// 2 for packed palette indexes and less than 1 for its transforms. Lossy data takes less
// than 2, and 1 for transparency, which is lossless data unless it is stored plainly.
func inspectWebP(data []byte) (*Header, error) {
	config, err := webp.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return nil, broken("WebP")
	}
	pixels := int64(config.Width) * int64(config.Height)
	h := &Header{Width: config.Width, Height: config.Height}
	for rest := data[12:]; len(rest) > 8; {
		chunk, size := string(rest[:4]), int64(binary.LittleEndian.Uint32(rest[4:]))
		switch chunk {
		case webpAnimation:
			return nil, invalid("animated WebP pictures are not supported: send a still picture")
		case webpAlpha:
			h.memory += 3 * pixels
			if rest[8]&3 != 0 {
				h.memory += 7*pixels + losslessMemory
			}
		case webpLossless:
			h.memory += 7*pixels + losslessMemory
			return h, nil
		case webpLossy:
			h.memory += 2 * pixels
			return h, nil
		}
		rest = rest[min(int64(len(rest)), 8+size+size%2):]
	}
	return nil, broken("WebP")
}
