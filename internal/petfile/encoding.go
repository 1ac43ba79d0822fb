package petfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// ErrUTF16 is the error for a file in UTF-16.
var ErrUTF16 = errors.New(`the file is UTF-16, which Excel calls "Unicode Text": save it as "CSV UTF-8" and import it again`)

// IsUTF16 reports whether a file that starts like this is marked as UTF-16.
func IsUTF16(start []byte) bool {
	return bytes.HasPrefix(start, []byte("\xff\xfe")) || bytes.HasPrefix(start, []byte("\xfe\xff"))
}

// encodingError is the error for a file that isn't UTF-8.
type encodingError struct{ line int }

func (e encodingError) Error() string {
	return fmt.Sprintf(`line %d isn't UTF-8: it is probably Windows-1252, as Excel's plain "CSV" is. `+
		`Save the file as "CSV UTF-8" and import it again`, e.line)
}

// utf8Reader reads text up to the first bytes that aren't UTF-8, where it fails with an
// [encodingError].
type utf8Reader struct {
	in      io.Reader
	more    [4096]byte
	pending []byte // read, but not returned yet
	checked int    // how many of the pending bytes are valid
	line    int    // of the first byte that isn't checked, from 0
	err     error  // after the checked bytes
}

func newUTF8Reader(in io.Reader) *utf8Reader { return &utf8Reader{in: in} }

func (r *utf8Reader) Read(p []byte) (int, error) {
	for r.checked == 0 && r.err == nil {
		r.fill()
	}
	if r.checked == 0 {
		return 0, r.err
	}
	n := copy(p, r.pending[:r.checked])
	r.pending, r.checked = r.pending[n:], r.checked-n
	return n, nil
}

// fill reads more and checks it. A character that is cut off waits for its other bytes.
func (r *utf8Reader) fill() {
	n, err := r.in.Read(r.more[:])
	r.pending = append(r.pending, r.more[:n]...)
	for rest := r.pending[r.checked:]; len(rest) > 0; rest = r.pending[r.checked:] {
		if err == nil && !utf8.FullRune(rest) {
			return
		}
		c, size := utf8.DecodeRune(rest)
		if c == utf8.RuneError && size == 1 {
			r.err = encodingError{r.line + 1}
			return
		}
		if c == '\n' {
			r.line++
		}
		r.checked += size
	}
	r.err = err
}
