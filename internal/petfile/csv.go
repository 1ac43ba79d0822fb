package petfile

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"animalstore"
	"animalstore/internal/strictjson"
)

// csvReader reads CSV whose first line names the columns.
type csvReader struct {
	in      *rowLimiter
	csv     *csv.Reader
	columns []string // in lower case
	line    int      // where the last row begins
}

func newCSVReader(in *bufio.Reader) (*csvReader, error) {
	r := &csvReader{in: &rowLimiter{in: newUTF8Reader(in)}}
	r.csv = csv.NewReader(r.in)
	r.csv.FieldsPerRecord, r.csv.ReuseRecord = -1, true
	r.csv.Comma = peekSeparator(in)
	header, err := r.record()
	var invalid *csv.ParseError
	switch {
	case errors.Is(err, io.EOF):
		return nil, errors.New("the file is empty: it needs a first line with column names, such as name,categoryId,status")
	case errors.As(err, new(encodingError)):
		return nil, err
	case errors.As(err, &invalid):
		return nil, fmt.Errorf("the first line must be column names: %w", describeCSV(invalid))
	case err != nil:
		return nil, fmt.Errorf("the first line must be column names: %w", err)
	}
	for _, name := range header {
		r.columns = append(r.columns, strings.ToLower(strings.TrimSpace(name)))
	}
	for _, name := range []string{"name", "categoryId", "status"} {
		column := strings.ToLower(name)
		first := slices.Index(r.columns, column)
		switch {
		case first < 0 && name != "status":
			line := strings.Join(header, string(r.csv.Comma))
			return nil, fmt.Errorf("the first line must be column names that include %s, such as name,categoryId,status: it is %q", name, line[:min(maxShown, len(line))])
		case first >= 0 && slices.Contains(r.columns[first+1:], column):
			return nil, fmt.Errorf("the first line has the column name %q twice", name)
		}
	}
	return r, nil
}

// peekSeparator returns the separator in the first line that isn't empty. Spreadsheets write
// semicolons where the comma is the decimal separator.
func peekSeparator(in *bufio.Reader) rune {
	start, _ := in.Peek(in.Size())
	header, _, _ := bytes.Cut(bytes.TrimLeft(start, "\r\n"), []byte("\n"))
	quoted, semicolons, commas := false, 0, 0
	for _, c := range header {
		switch {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == ';':
			semicolons++
		case c == ',':
			commas++
		}
	}
	if semicolons > commas {
		return ';'
	}
	return ','
}

func (r *csvReader) next() (Row, error) {
	fields, err := r.record()
	var invalid *csv.ParseError
	switch {
	case errors.As(err, &invalid):
		return Row{Line: int64(invalid.StartLine), Err: describeCSV(invalid)}, nil
	case err != nil:
		return Row{}, err
	}
	found := Row{Line: int64(r.line)}
	if len(fields) != len(r.columns) {
		found.Err = fmt.Errorf("got %d fields, but the first line names %d columns", len(fields), len(r.columns))
		return found, nil
	}
	found.setPet(r.pet(fields))
	found.Pet.Name = strings.Clone(found.Pet.Name) // so that the pet doesn't keep the whole line in memory
	found.Pet.Status = animalstore.PetStatus(strings.Clone(string(found.Pet.Status)))
	return found, nil
}

// record reads the next record, which is only valid until the one after it is read.
func (r *csvReader) record() ([]string, error) {
	r.in.left = maxRow
	r.in.forget(r.csv.InputOffset())
	fields, err := r.csv.Read()
	switch {
	case errors.Is(err, errRowTooLong):
		return nil, fmt.Errorf("after line %d: a row has more than %d bytes: %w", r.line, maxRow, err)
	case err == nil:
		r.line, _ = r.csv.FieldPos(0)
	}
	return fields, err
}

// describeCSV says what is wrong with a row. After a quote that isn't closed properly,
// several lines are one row.
func describeCSV(e *csv.ParseError) error {
	if e.Line > e.StartLine {
		return fmt.Errorf("not valid CSV: the quote opened here is not closed properly; lines %d–%d were read as one field", e.StartLine, e.Line)
	}
	return fmt.Errorf("not valid CSV at byte %d: %w", e.Column, e.Err)
}

// maxShown is how many bytes of a file an error quotes.
const maxShown = 200

var errRowTooLong = errors.New("is a quote not closed?")

// rowLimiter limits how much is read for a row, because package csv keeps all of it in
// memory. It keeps the text of the latest row.
type rowLimiter struct {
	in     io.Reader
	left   int    // bytes
	kept   []byte // since offset
	offset int64
}

func (l *rowLimiter) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errRowTooLong
	}
	n, err := l.in.Read(p)
	l.left -= n
	l.kept = append(l.kept, p[:n]...)
	return n, err
}

// forget drops what was kept before an offset.
func (l *rowLimiter) forget(offset int64) {
	l.kept, l.offset = l.kept[offset-l.offset:], offset
}

// latestWith returns the text of the latest record with one more field.
func (r *csvReader) latestWith(field string) []byte {
	text := r.in.kept[:r.csv.InputOffset()-r.in.offset]
	text = bytes.TrimLeft(text, "\r\n") // empty lines
	ending := "\n"
	text = bytes.TrimSuffix(text, []byte("\n"))
	if before, found := bytes.CutSuffix(text, []byte("\r")); found {
		text, ending = before, "\r\n"
	}
	return slices.Concat(text, []byte(string(r.csv.Comma)+field+ending))
}

func (r *csvReader) pet(fields []string) (pet animalstore.NewPet, err error) {
	pet.Status = animalstore.PetAvailable
	for i, column := range r.columns {
		value := fields[i]
		switch column {
		case "name":
			pet.Name = unescapeFormula(value)
		case "categoryid":
			if pet.CategoryID, err = strictjson.ParseInteger([]byte(strings.TrimSpace(value))); err != nil {
				return pet, fmt.Errorf("categoryId %w", err)
			}
		case "status":
			pet.Status = cmp.Or(animalstore.PetStatus(strings.TrimSpace(value)), pet.Status)
		}
	}
	return pet, nil
}

// escapeFormula puts an apostrophe before a name that a spreadsheet would run as a formula.
// A name that looks escaped gets another one, so that unescapeFormula restores every name.
func escapeFormula(name string) string {
	if isFormula(strings.TrimLeft(name, "'")) {
		return "'" + name
	}
	return name
}

func unescapeFormula(name string) string {
	if rest, escaped := strings.CutPrefix(name, "'"); escaped && isFormula(strings.TrimLeft(rest, "'")) {
		return rest
	}
	return name
}

func isFormula(name string) bool {
	return name != "" && strings.ContainsRune("=+-@\t\r", rune(name[0]))
}
