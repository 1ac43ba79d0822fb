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
	in      *bounded
	csv     *csv.Reader
	columns []string
}

func newCSVReader(in io.Reader) (*csvReader, error) {
	r := &csvReader{in: &bounded{r: in}}
	r.csv = csv.NewReader(r.in)
	r.csv.FieldsPerRecord, r.csv.ReuseRecord = -1, true
	r.in.left = maxRow
	header, err := r.csv.Read()
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
	r.in.left = maxRow
	fields, err := r.csv.Read()
	var parse *csv.ParseError
	switch {
	case errors.Is(err, errTooLong):
		line, _ := r.csv.FieldPos(0)
		return Row{}, fmt.Errorf("after line %d: %w", line, err)
	case errors.As(err, &parse):
		row := Row{Line: int64(parse.StartLine), Err: errors.New("not valid CSV: " + parse.Err.Error())}
		if parse.Line > parse.StartLine {
			row.Err = fmt.Errorf("not valid CSV: a quote opened here is closed wrongly in line %d, so everything in between is one field", parse.Line)
		}
		return row, nil
	case err != nil:
		return Row{}, err
	}
	line, _ := r.csv.FieldPos(0)
	row := Row{Line: int64(line)}
	if len(fields) != len(r.columns) {
		row.Err = fmt.Errorf("got %d fields, but the first line names %d columns", len(fields), len(r.columns))
		return row, nil
	}
	row.setPet(r.pet(fields))
	return row, nil
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

// errTooLong ends a file: there is no telling where the next pet begins.
var errTooLong = fmt.Errorf("a pet takes more than %d bytes (is a quote not closed?); the rest was not read", maxRow)

// bounded fails when more than a row is read at a time. Data that its reader
// buffers ahead counts toward the row before, so rows may be slightly longer.
type bounded struct {
	r    io.Reader
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLong
	}
	n, err := b.r.Read(p)
	b.left -= n
	return n, err
}
