package phototest

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"image/color"
	"math/rand/v2"
	"slices"
)

// Upload is a body with its Content-Type.
type Upload struct {
	Name        string
	ContentType string
	Data        []byte
}

// Bad returns n uploads that must be refused: first those that are made to exhaust a
// decoder or to pass as a picture, then damaged ones. The same seed gives the same ones.
func Bad(n int, seed uint64) []Upload {
	all := slices.Concat(bombs(), disguised())
	r := rand.New(rand.NewPCG(seed, 0))
	for len(all) < n {
		all = append(all, damaged(r, len(all)))
	}
	return all[:n]
}

// bombs would take a decoder much memory or time.
func bombs() []Upload {
	var all []Upload
	add := func(name, contentType string, data []byte) {
		all = append(all, Upload{name, "image/" + contentType, data})
	}
	add("65,535 × 65,535 JPEG", "jpeg", append(JPEGFrame(65535, 65535, false, 0x22, 0x11, 0x11), Scan(0, 63, 1000, 1, 2, 3)...))
	add("progressive 65,535 × 65,535 JPEG", "jpeg", Progressive(65535, 65535, 0)[:4096])
	add("24 megapixels of progressive JPEG in full colour", "jpeg", append(JPEGFrame(6000, 4000, true, 0x11, 0x11, 0x11), Scan(0, 0, 200_000, 1, 2, 3)...))
	add("JPEG with 10,000 scans", "jpeg", Progressive(6000, 4000, 10_000))
	add("JPEG with 100,000 scans", "jpeg", Progressive(1600, 1600, 100_000))
	markers := JPEG(Drawing(64, 64))[:2]
	for range 10_000 {
		markers = append(markers, 0xff, 0xe5, 0, 2)
	}
	add("JPEG of 10,000 markers", "jpeg", markers)
	add("JPEG of 1,000,000 fill bytes", "jpeg", append([]byte{0xff, 0xd8}, bytes.Repeat([]byte{0xff}, 1_000_000)...))
	add("JPEG of escaped bytes", "jpeg", append([]byte{0xff, 0xd8}, bytes.Repeat([]byte{0xff, 0}, 2_000_000)...))
	add("65,535 × 65,535 PNG", "png", append(PNGHeader(65535, 65535, 8, 6, 0), Zeros(1<<10)...))
	add("PNG with the largest sides", "png", PNGHeader(1<<31-1, 1<<31-1, 16, 6, 1))
	add("24 megapixels of interlaced PNG with 16 bits", "png", append(PNGHeader(6000, 4000, 16, 6, 1), Zeros(1<<10)...))
	add("PNG with one row", "png", append(PNGHeader(24_000_000, 1, 16, 6, 0), Zeros(1<<10)...))
	add("PNG with more pixels than it says", "png", append(PNGHeader(100, 100, 8, 6, 0), Zeros(1<<20)...))
	add("PNG with fewer pixels than it says", "png", append(PNGHeader(4000, 4000, 8, 6, 0), Zeros(1<<10)...))
	add("16,384 × 16,384 WebP", "webp", WebP(16384, 16384, color.NRGBA{1, 2, 3, 255}))
	add("lossless WebP that takes too much memory", "webp", WebP(6000, 4000, color.NRGBA{1, 2, 3, 255}))
	add("WebP with a canvas of 2^24 × 2^24", "webp", RIFF("VP8X", append([]byte{0x10, 0, 0, 0}, bytes.Repeat([]byte{0xff}, 6)...)))
	add("animated WebP", "webp", Resize(append(RIFF("VP8X", []byte{2, 0, 0, 0, 99, 0, 0, 99, 0, 0}), "ANIM\x06\x00\x00\x00\x00\x00\x00\x00\x00\x00"...)))
	return all
}

// Zeros returns PNG chunks with n zeros as pixel data, compressed a thousandfold.
func Zeros(n int) []byte {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	w.Write(make([]byte, n))
	w.Close()
	return append(Chunk("IDAT", b.Bytes()), Chunk("IEND", nil)...)
}

// disguised are files that aren't what their Content-Type says.
func disguised() []Upload {
	small := Drawing(32, 32)
	gif := append([]byte("GIF89a\xff\xff\xff\xff\x80\x00\x00\x00\x00\x00\xff\xff\xff"), bytes.Repeat([]byte("\x2c\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02\x44\x01\x00"), 10_000)...)
	files := []Upload{
		{"endless GIF", "", gif},
		{"SVG", "", []byte(`<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>`)},
		{"HTML", "", []byte("<!DOCTYPE html><script>alert(1)</script>")},
		{"HTML after a start of JPEG", "", []byte("\xff\xd8\xff<script>alert(1)</script>")},
		{"script after a signature of PNG", "", []byte("\x89PNG\r\n\x1a\n<script>alert(1)</script>")},
		{"HTML in a RIFF file", "", RIFF("VP8 ", []byte("<script>alert(1)</script>"))},
		{"PDF", "", []byte("%PDF-1.7\n1 0 obj\n")},
		{"ZIP", "", []byte("PK\x03\x04\x14\x00")},
		{"BMP", "", []byte("BM\x00\x00\x00\x00")},
		{"TIFF", "", []byte("II*\x00\x08\x00\x00\x00")},
		{"HEIC", "", []byte("\x00\x00\x00\x18ftypheic")},
		{"empty", "", nil},
		{"one byte", "", []byte{0xff}},
		{"zeros", "", make([]byte, 1<<20)},
	}
	var all []Upload
	for _, f := range files {
		for _, t := range []string{"jpeg", "png", "webp"} {
			all = append(all, Upload{f.Name + " as " + t, "image/" + t, f.Data})
		}
	}
	for _, t := range []string{"jpeg", "png", "webp"} {
		for name, data := range map[string][]byte{"jpeg": JPEG(small), "png": PNG(small), "webp": WebP(32, 32, color.NRGBA{9, 9, 9, 255})} {
			if name != t {
				all = append(all, Upload{name + " as " + t, "image/" + t, data})
			}
		}
	}
	slices.SortStableFunc(all[len(files)*3:], func(a, b Upload) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) })
	return all
}

// damaged returns a picture that was cut off or changed so that it can't be decoded.
func damaged(r *rand.Rand, i int) Upload {
	w, h := 16+r.IntN(200), 16+r.IntN(200)
	switch i % 5 {
	case 0: // without its last bytes, which include the end marker
		file := JPEG(Drawing(w, h))
		return Upload{fmt.Sprintf("%d: JPEG cut off", i), "image/jpeg", file[:2+r.IntN(len(file)-4)]}
	case 1:
		file := PNG(Drawing(w, h))
		return Upload{fmt.Sprintf("%d: PNG cut off", i), "image/png", file[:8+r.IntN(len(file)-20)]}
	case 2: // every byte of a PNG file before its end is covered by a checksum
		file := PNG(Drawing(w, h))
		file[8+r.IntN(len(file)-20)] ^= 1 << r.IntN(8)
		return Upload{fmt.Sprintf("%d: PNG with a wrong bit", i), "image/png", file}
	case 3:
		file := WebP(w, h, color.NRGBA{1, 2, 3, 255})
		return Upload{fmt.Sprintf("%d: WebP cut off", i), "image/webp", file[:r.IntN(len(file)-10)]}
	default: // EXIF that lies about its size, and no picture after it
		exif := EXIF(1+r.IntN(8), "x")
		binary.LittleEndian.PutUint32(exif[20:], r.Uint32())
		file := InsertSegment(JPEG(Drawing(w, h)), 0xe1, exif)
		return Upload{fmt.Sprintf("%d: JPEG with EXIF that lies", i), "image/jpeg", file[:len(file)-2-r.IntN(100)]}
	}
}
