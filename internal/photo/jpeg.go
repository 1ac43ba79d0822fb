package photo

import (
	"bytes"
	"encoding/binary"
)

// maxBlocks limits how many blocks of 8 × 8 pixels the scans of a JPEG file visit. An
// ordinary progressive picture of 24 megapixels has 3 million. Without a limit, a file of
// 10 MiB could keep a decoder busy for hours: a scan of any picture takes a few bytes.
const maxBlocks = 8_000_000

// JPEG markers.
const (
	markerSOF0  = 0xc0 // baseline
	markerSOF1  = 0xc1 // extended
	markerSOF2  = 0xc2 // progressive
	markerRST0  = 0xd0
	markerRST7  = 0xd7
	markerEOI   = 0xd9
	markerSOS   = 0xda
	markerAPP14 = 0xee
)

// inspectJPEG reads all markers of a file, in the way that image/jpeg finds them, and
// estimates what that package allocates.
func inspectJPEG(data []byte) (*Header, error) {
	var frame jpegFrame
	blocks := int64(0)
	for rest := data[2:]; ; {
		marker, body, after := nextSegment(rest)
		rest = after
		switch marker {
		case 0, markerEOI: // without an end, decoding fails
			if blocks == 0 {
				return nil, broken("JPEG")
			}
			return &Header{Width: frame.width, Height: frame.height, memory: frame.memory()}, nil
		case markerSOF0, markerSOF1, markerSOF2:
			if frame.width != 0 || !frame.read(body, marker == markerSOF2) {
				return nil, broken("JPEG")
			}
		case markerAPP14:
			frame.rgb = frame.rgb || len(body) >= 12 && string(body[:5]) == "Adobe" && body[11] == 0
		case markerSOS:
			if len(body) == 0 {
				return nil, broken("JPEG")
			}
			if blocks += frame.scanned(int(body[0])); blocks > maxBlocks {
				return nil, invalid("decoding the picture would take too long: it has too many scans; save it as a baseline JPEG")
			}
		}
	}
}

// nextSegment returns the next marker with its segment, and what follows. It skips pixel
// data, in which 0xff is followed by 0 or is a restart marker. The marker is 0 at the end
// of the data.
func nextSegment(data []byte) (marker byte, body, rest []byte) {
	for {
		i := bytes.IndexByte(data, 0xff)
		if i < 0 {
			return 0, nil, nil
		}
		for data = data[i:]; len(data) > 0 && data[0] == 0xff; { // any number of them
			data = data[1:]
		}
		if len(data) == 0 {
			return 0, nil, nil
		}
		marker, data = data[0], data[1:]
		if marker == 0 || markerRST0 <= marker && marker <= markerRST7 {
			continue
		}
		if marker == markerEOI {
			return marker, nil, nil
		}
		if len(data) < 2 {
			return 0, nil, nil
		}
		size := int(binary.BigEndian.Uint16(data))
		if size < 2 || size > len(data) {
			return 0, nil, nil
		}
		return marker, data[2:size], data[size:]
	}
}

// jpegFrame is the header of a frame.
type jpegFrame struct {
	width, height int
	progressive   bool
	rgb           bool // not YCbCr, so it is decoded to a copy
	components    int
	mcus          int64 // groups of blocks that cover the picture
	mcuBlocks     int64 // in each of them
}

// read reads the frame and reports whether it makes sense.
func (f *jpegFrame) read(body []byte, progressive bool) bool {
	if len(body) < 6 || len(body) < 6+3*int(body[5]) {
		return false
	}
	f.height, f.width = int(binary.BigEndian.Uint16(body[1:])), int(binary.BigEndian.Uint16(body[3:]))
	f.progressive, f.components = progressive, int(body[5])
	if f.width == 0 || f.height == 0 || f.components == 0 || f.components > 4 {
		return false
	}
	ids := ""
	h0, v0 := int64(1), int64(1)
	for i := range f.components {
		spec := body[6+3*i:]
		h, v := int64(spec[1]>>4), int64(spec[1]&15)
		if h < 1 || h > 4 || v < 1 || v > 4 {
			return false
		}
		if f.components == 1 {
			h, v = 1, 1 // a single component isn't sampled
		}
		if i == 0 {
			h0, v0 = h, v
		}
		f.mcuBlocks += h * v
		ids += string(rune(spec[0]))
	}
	f.rgb = f.rgb || ids == "RGB"
	f.mcus = ((int64(f.width) + 8*h0 - 1) / (8 * h0)) * ((int64(f.height) + 8*v0 - 1) / (8 * v0))
	return true
}

// scanned returns how many blocks a scan visits, at most.
func (f *jpegFrame) scanned(components int) int64 {
	if components < f.components && f.components > 2 {
		// The largest component has at most all blocks but one of each other.
		return f.mcus * (f.mcuBlocks - int64(f.components) + 1)
	}
	return f.mcus * f.mcuBlocks
}

// memory returns what decoding takes: a byte for each sample, four for each coefficient
// of a progressive picture, and four for each pixel of a copy in another colour model.
func (f *jpegFrame) memory() int64 {
	bytes := f.mcus * f.mcuBlocks * 64
	if f.progressive {
		bytes *= 5
	}
	if f.components == 4 || f.components == 3 && f.rgb {
		bytes += 4 * int64(f.width) * int64(f.height)
	}
	return bytes
}
