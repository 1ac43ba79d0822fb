package petfile

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"animalstore"
	"animalstore/internal/strictjson"
)

// csvReader reads CSV whose first line names the columns. It finds the lines of each
// record itself, so that a quote that isn't closed can't hide the lines after it.
type csvReader struct {
	lines    lineReader
	buffer   *bufio.Reader // one record, as csv's input
	csv      *csv.Reader
	columns  []string
	hidden   []numberedLine // lines inside a field with an unclosed quote: checked, never added
	unclosed bool           // a quote wasn't closed within maxRow: all later lines are hidden
}

type numberedLine struct {
	number int64
	text   []byte
}

func newCSVReader(in *bufio.Reader) (*csvReader, error) {
	r := &csvReader{lines: lineReader{in: in}, buffer: bufio.NewReader(nil)}
	r.csv = csv.NewReader(r.buffer)
	r.csv.FieldsPerRecord, r.csv.ReuseRecord = -1, true
	header, err := r.header()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("the file is empty: it needs a first line with column names, such as name,categoryId,status")
	}
	if err != nil {
		return nil, fmt.Errorf("the first line must be column names: %w", err)
	}
	for _, name := range header {
		name = strings.TrimSpace(name)
		if slices.Contains(r.columns, name) {
			return nil, fmt.Errorf("the first line has the column name %q twice", name)
		}
		r.columns = append(r.columns, name)
	}
	for _, name := range []string{"name", "categoryId"} {
		if !slices.Contains(r.columns, name) {
			return nil, fmt.Errorf("the first line must be column names that include %s, such as name,categoryId,status: it is %q", name, strings.Join(r.columns, ","))
		}
	}
	return r, nil
}

// header reads the first line that isn't empty.
func (r *csvReader) header() ([]string, error) {
	for {
		text, err := r.record()
		if err != nil {
			return nil, err
		}
		if fields, err := r.fields(text); !errors.Is(err, io.EOF) {
			return fields, err
		}
	}
}

func (r *csvReader) Next() (Row, error) {
	for {
		if len(r.hidden) > 0 {
			line := r.hidden[0]
			r.hidden = r.hidden[1:]
			if row, ok := r.row(line.number, line.text); ok && row.Err != nil {
				return row, nil
			}
			continue
		}
		number := r.lines.line + 1
		text, err := r.record()
		var invalid invalidRecord
		switch {
		case errors.As(err, &invalid):
			return Row{Line: number, Err: err}, nil
		case err != nil:
			return Row{}, err
		case r.unclosed:
			r.hidden = append(r.hidden, numberedLine{number, text})
			continue
		}
		if row, ok := r.row(number, text); ok {
			return row, nil
		}
	}
}

// invalidRecord says why lines aren't a record.
type invalidRecord string

func (e invalidRecord) Error() string { return string(e) }

// record reads the lines of one record. If a quote isn't closed properly, the error is
// an invalidRecord, and the lines after the first become hidden.
func (r *csvReader) record() ([]byte, error) {
	first := r.lines.line + 1
	text, tooLong, err := r.lines.readLine()
	if err != nil {
		return nil, err
	}
	if tooLong {
		return nil, invalidRecord(fmt.Sprintf("the line has more than %d bytes", maxRow))
	}
	if r.unclosed {
		return text, nil
	}
	open, wrong := scanQuotes(text, false)
	if !open {
		return text, nil
	}
	var rest []numberedLine
	for open && !wrong && !r.unclosed {
		line, tooLong, err := r.lines.readLine()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		rest = append(rest, numberedLine{r.lines.line, line})
		text = append(text, line...)
		r.unclosed = tooLong || len(text) > maxRow
		open, wrong = scanQuotes(line, true)
	}
	switch {
	case r.unclosed:
		r.hidden = rest
		return nil, invalidRecord(fmt.Sprintf("not valid CSV: the quote opened here is not closed properly; everything from line %d on was read as one field", first))
	case (open || wrong) && len(rest) > 0:
		r.hidden = rest
		return nil, invalidRecord(fmt.Sprintf("not valid CSV: the quote opened here is not closed properly; lines %d–%d were read as one field", first, rest[len(rest)-1].number))
	}
	return text, nil
}

// scanQuotes reports whether a quoted field is still open at the end of a line, and
// whether a quote in the line is misplaced. open says that the line begins inside a
// quoted field.
func scanQuotes(line []byte, open bool) (stillOpen, wrong bool) {
	line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
	for {
		if !open && !bytes.HasPrefix(line, []byte(`"`)) {
			field, rest, more := bytes.Cut(line, []byte(","))
			if wrong = bytes.ContainsRune(field, '"'); wrong || !more {
				return false, wrong
			}
			line = rest
			continue
		}
		if !open {
			line, open = line[1:], true
		}
		_, rest, found := bytes.Cut(line, []byte(`"`))
		switch {
		case !found:
			return true, false
		case len(rest) == 0:
			return false, false
		case rest[0] == ',':
			open = false
		case rest[0] != '"': // two quotes stand for one
			return false, true
		}
		line = rest[1:]
	}
}

// fields reads the fields of a record. The error is io.EOF if it is empty.
func (r *csvReader) fields(text []byte) ([]string, error) {
	r.buffer.Reset(bytes.NewReader(text))
	fields, err := r.csv.Read()
	var parse *csv.ParseError
	if errors.As(err, &parse) {
		err = invalidRecord("not valid CSV: " + parse.Err.Error())
	}
	return fields, err
}

// row reads one record as a row. ok is false if the record is empty.
func (r *csvReader) row(number int64, text []byte) (row Row, ok bool) {
	row.Line = number
	fields, err := r.fields(text)
	switch {
	case errors.Is(err, io.EOF):
		return row, false
	case err != nil:
		row.Err = err
	case len(fields) != len(r.columns):
		row.Err = fmt.Errorf("got %d fields, but the first line names %d columns", len(fields), len(r.columns))
	default:
		row.setPet(r.pet(fields))
	}
	return row, true
}

func (r *csvReader) pet(fields []string) (pet animalstore.NewPet, err error) {
	for i, name := range r.columns {
		value := strings.Clone(fields[i]) // the reader reuses the record
		switch name {
		case "name":
			pet.Name = value
		case "categoryId":
			if pet.CategoryID, err = strictjson.ParseInteger([]byte(strings.TrimSpace(value))); err != nil {
				return pet, fmt.Errorf("categoryId %w", err)
			}
		case "status":
			pet.Status = animalstore.PetStatus(strings.TrimSpace(value))
		}
	}
	return pet, nil
}
