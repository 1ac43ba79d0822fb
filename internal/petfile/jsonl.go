package petfile

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"

	"animalstore/internal/strictjson"
)

// jsonlReader reads one JSON object per line.
type jsonlReader struct {
	lines *bufio.Scanner
	line  int64 // number of the last line read
}

func newJSONLReader(in io.Reader) *jsonlReader {
	r := &jsonlReader{lines: bufio.NewScanner(in)}
	r.lines.Buffer(nil, maxRow)
	return r
}

func (r *jsonlReader) next() (Row, error) {
	for r.lines.Scan() {
		r.line++
		text := bytes.TrimSpace(r.lines.Bytes())
		if len(text) == 0 {
			continue
		}
		found := Row{Line: r.line}
		found.setPet(strictjson.DecodeNewPet(text))
		return found, nil
	}
	if r.lines.Err() == bufio.ErrTooLong {
		return Row{}, fmt.Errorf("line %d has more than %d bytes", r.line+1, maxRow)
	}
	return Row{}, cmp.Or(r.lines.Err(), io.EOF)
}
