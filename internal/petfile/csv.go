package petfile

import (
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
	columns []string
	line    int // where the last row begins
}

func newCSVReader(in io.Reader) (*csvReader, error) {
	r := &csvReader{in: &rowLimiter{in: in}}
	r.csv = csv.NewReader(r.in)
	r.csv.FieldsPerRecord, r.csv.ReuseRecord = -1, true
	header, err := r.record()
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

func (r *csvReader) Next() (Row, error) {
	fields, err := r.record()
	var invalid *csv.ParseError
	switch {
	case errors.As(err, &invalid):
		return Row{Line: int64(invalid.StartLine), Err: describeCSV(invalid)}, nil
	case err != nil:
		return Row{}, err
	}
	row := Row{Line: int64(r.line)}
	if len(fields) != len(r.columns) {
		row.Err = fmt.Errorf("got %d fields, but the first line names %d columns", len(fields), len(r.columns))
		return row, nil
	}
	row.setPet(r.pet(fields))
	return row, nil
}

// record reads the next record, which is only valid until the one after it is read.
func (r *csvReader) record() ([]string, error) {
	r.in.left = maxRow
	fields, err := r.csv.Read()
	switch {
	case errors.Is(err, errRowTooLong):
		return nil, fmt.Errorf("after line %d: %w", r.line, err)
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
	return errors.New("not valid CSV: " + e.Err.Error())
}

var errRowTooLong = fmt.Errorf("a row has more than %d bytes: is a quote not closed?", maxRow)

// rowLimiter limits how much is read for a row, because package csv keeps all of it in
// memory.
type rowLimiter struct {
	in   io.Reader
	left int
}

func (l *rowLimiter) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errRowTooLong
	}
	n, err := l.in.Read(p)
	l.left -= n
	return n, err
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
