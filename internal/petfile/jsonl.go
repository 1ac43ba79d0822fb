package petfile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"animalstore/internal/strictjson"
)

// jsonlReader reads one JSON object per line.
type jsonlReader struct {
	in     *bufio.Reader
	maxRow int
	line   int64 // number of the last line read
}

func (r *jsonlReader) next() (Row, error) {
	for {
		text, tooLong, err := r.readLine()
		if err != nil {
			return Row{}, err
		}
		found := Row{Line: r.line}
		if tooLong {
			found.Err = fmt.Errorf("the line has more than %d bytes", r.maxRow)
			return found, nil
		}
		if text = bytes.TrimSpace(text); len(text) == 0 {
			continue
		}
		found.setPet(strictjson.DecodeNewPet(text))
		return found, nil
	}
}

// readLine reads a line with its line break. It discards the content of a line that is
// too long.
func (r *jsonlReader) readLine() (text []byte, tooLong bool, err error) {
	r.line++
	for {
		part, err := r.in.ReadSlice('\n')
		if !tooLong {
			text = append(text, part...)
		}
		if len(text) > r.maxRow {
			text, tooLong = nil, true
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && (len(text) > 0 || tooLong):
			return text, tooLong, nil // the last line may lack a line break
		}
		return text, tooLong, err
	}
}
