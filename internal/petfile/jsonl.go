package petfile

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"animalstore/internal/strictjson"
)

// jsonlReader reads one JSON object per line.
type jsonlReader struct {
	lines *bufio.Scanner
	line  int64  // number of the last line read
	text  []byte // of that line
}

func newJSONLReader(in io.Reader) *jsonlReader {
	r := &jsonlReader{lines: bufio.NewScanner(in)}
	r.lines.Buffer(nil, maxRow)
	return r
}

func (r *jsonlReader) next() (Row, error) {
	for r.lines.Scan() {
		r.line++
		if r.text = bytes.TrimSpace(r.lines.Bytes()); len(r.text) == 0 {
			continue
		}
		found := Row{Line: r.line}
		found.setPet(strictjson.DecodeNewPet(r.text))
		return found, nil
	}
	if r.lines.Err() == bufio.ErrTooLong {
		return Row{}, fmt.Errorf("line %d has more than %d bytes", r.line+1, maxRow)
	}
	return Row{}, cmp.Or(r.lines.Err(), io.EOF)
}

// latestWith returns the latest line, which is an object with fields, with an id.
func (r *jsonlReader) latestWith(id string) []byte {
	text := bytes.TrimRight(bytes.TrimSuffix(r.text, []byte("}")), " \t")
	return slices.Concat(text, []byte(`,"id":`+id+"}\n"))
}

// hasID reports whether the latest line, which is an object, has a field "id".
func (r *jsonlReader) hasID() bool {
	var fields map[string]json.RawMessage
	return json.Unmarshal(r.text, &fields) == nil && fields["id"] != nil
}
