// Package phototest makes pictures for tests: good ones, and uploads that must be refused.
package phototest

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"slices"
)

// The colours of [Drawing], from the top left corner clockwise.
var Corners = [4]color.RGBA{{220, 30, 30, 255}, {30, 200, 30, 255}, {30, 30, 220, 255}, {230, 220, 40, 255}}

// Drawing returns a picture whose quarters have the colours of [Corners], so that a test
// can tell how it was turned.
func Drawing(width, height int) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			right, below := x >= width/2, y >= height/2
			corner := 0
			switch {
			case right && below:
				corner = 2
			case right:
				corner = 1
			case below:
				corner = 3
			}
			img.SetRGBA(x, y, Corners[corner])
		}
	}
	return img
}

// JPEG returns a picture as JPEG.
func JPEG(img image.Image) []byte {
	var b bytes.Buffer
	if err := jpeg.Encode(&b, img, &jpeg.Options{Quality: 85}); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// PNG returns a picture as PNG.
func PNG(img image.Image) []byte {
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// InsertSegment returns a JPEG file with another segment after its first marker.
func InsertSegment(file []byte, marker byte, body []byte) []byte {
	segment := binary.BigEndian.AppendUint16([]byte{0xff, marker}, uint16(len(body)+2))
	return slices.Concat(file[:2], segment, body, file[2:])
}

// EXIF returns an EXIF block with an orientation and a description.
func EXIF(orientation int, description string) []byte {
	b := []byte("Exif\x00\x00II*\x00\x08\x00\x00\x00\x02\x00")
	le := binary.LittleEndian
	text := description + "\x00"
	entry := func(tag, kind uint16, count, value uint32) {
		b = le.AppendUint32(le.AppendUint32(le.AppendUint16(le.AppendUint16(b, tag), kind), count), value)
	}
	const afterDirectory = 8 + 2 + 2*12 + 4
	entry(0x010e, 2, uint32(len(text)), afterDirectory)
	entry(0x0112, 3, 1, uint32(orientation))
	return append(append(b, 0, 0, 0, 0), text...)
}

// Chunk returns a PNG chunk.
func Chunk(name string, body []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	b = append(append(b, name...), body...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:]))
}

// InsertChunk returns a PNG file with another chunk after its header.
func InsertChunk(file []byte, name string, body []byte) []byte {
	const header = 8 + 4 + 4 + 13 + 4
	return slices.Concat(file[:header], Chunk(name, body), file[header:])
}

// PNGHeader returns a PNG file that consists of its header alone.
func PNGHeader(width, height uint32, depth, colour, interlace byte) []byte {
	body := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, width), height)
	body = append(body, depth, colour, 0, 0, interlace)
	return append([]byte("\x89PNG\r\n\x1a\n"), Chunk("IHDR", body)...)
}

// JPEGFrame returns a JPEG file up to and including its frame header, with Huffman tables
// that map a single bit to the symbols 0 and 0xe0. So zeros are pixel data: flat blocks in
// a scan of DC, 16,384 empty blocks for each 15 bits in one of AC.
func JPEGFrame(width, height uint16, progressive bool, sampling ...byte) []byte {
	b := []byte{0xff, 0xd8}
	quant := append([]byte{0xff, 0xdb, 0, 67, 0}, bytes.Repeat([]byte{1}, 64)...)
	table := func(class, symbol byte) []byte {
		return slices.Concat([]byte{0xff, 0xc4, 0, 20, class << 4, 1}, make([]byte, 15), []byte{symbol})
	}
	b = slices.Concat(b, quant, table(0, 0), table(1, 0xe0))
	marker := byte(0xc0)
	if progressive {
		marker = 0xc2
	}
	frame := []byte{8}
	frame = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(frame, height), width)
	frame = append(frame, byte(len(sampling)))
	for i, s := range sampling {
		frame = append(frame, byte(i+1), s, 0)
	}
	b = append(binary.BigEndian.AppendUint16(append(b, 0xff, marker), uint16(len(frame)+2)), frame...)
	return b
}

// Scan returns a scan of a progressive JPEG file. Its band begins and ends with these
// coefficients, and its pixel data is zeros.
func Scan(first, last byte, size int, components ...byte) []byte {
	b := append([]byte{0xff, 0xda, 0, byte(6 + 2*len(components))}, byte(len(components)))
	for _, c := range components {
		b = append(b, c, 0)
	}
	return append(append(b, first, last, 0), make([]byte, size)...)
}

// Progressive returns a flat grey progressive JPEG picture with this many scans of AC.
func Progressive(width, height uint16, scans int) []byte {
	blocks := (int(width) + 15) / 16 * ((int(height) + 15) / 16) * 6
	b := JPEGFrame(width, height, true, 0x22, 0x11, 0x11)
	b = append(b, Scan(0, 0, blocks/8+2, 1, 2, 3)...)
	for range scans {
		b = append(b, Scan(1, 63, blocks/16384*15/8+4, 1)...)
	}
	return append(b, 0xff, 0xd9)
}

// WebP returns a lossless WebP picture in one colour. It has some 40 bytes, however large
// the picture is.
func WebP(width, height int, c color.NRGBA) []byte {
	var w bits
	w.add(uint64(width-1), 14)
	w.add(uint64(height-1), 14)
	w.add(1, 1) // has transparency
	w.add(0, 3) // version
	w.add(0, 3) // no transform, no colour cache, one group of codes
	for _, symbol := range []uint8{c.G, c.R, c.B, c.A, 0} {
		w.add(0b101, 3) // a code with a single symbol of 8 bits
		w.add(uint64(symbol), 8)
	}
	return RIFF("VP8L", append([]byte{0x2f}, w.bytes()...))
}

// RIFF returns a WebP file with a chunk.
func RIFF(name string, body []byte) []byte {
	le := binary.LittleEndian
	chunk := append(le.AppendUint32([]byte(name), uint32(len(body))), body...)
	if len(chunk)%2 != 0 {
		chunk = append(chunk, 0)
	}
	file := le.AppendUint32([]byte("RIFF"), uint32(4+len(chunk)))
	return append(append(file, "WEBP"...), chunk...)
}

// Resize corrects the size in the header of a WebP file to which chunks were added.
func Resize(file []byte) []byte {
	binary.LittleEndian.PutUint32(file[4:], uint32(len(file)-8))
	return file
}

// bits are written from the lowest.
type bits struct {
	all []bool
}

func (b *bits) add(value uint64, n int) {
	for i := range n {
		b.all = append(b.all, value>>i&1 != 0)
	}
}

func (b *bits) bytes() []byte {
	out := make([]byte, (len(b.all)+7)/8+1)
	for i, bit := range b.all {
		if bit {
			out[i/8] |= 1 << (i % 8)
		}
	}
	return out
}

// Grey is the colour of nothing in particular.
var Grey = color.NRGBA{120, 120, 120, 255}
