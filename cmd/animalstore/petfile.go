package main

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"animalstore"
)

// maxRow bounds one pet in a file, and with it the memory that a file with a
// quote that is never closed would take. The service takes no more either.
const maxRow = 1 << 20

// The formats of files with pets.
const (
	formatCSV   = "csv"
	formatJSONL = "jsonl"
)

var petFormats = []string{formatCSV, formatJSONL}

// formatOf tells a format by the name of a file; "" if it does not show.
func formatOf(name string) string {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".csv":
		return formatCSV
	case ".jsonl", ".ndjson":
		return formatJSONL
	}
	return ""
}

// fileError is an error that is a file's affair and not the server's.
func fileError(err error) error {
	if err == nil {
		return nil
	}
	return toldError{err, err.Error(), exitError}
}

// petRow is a pet in a file.
type petRow struct {
	line int64 // where it begins
	pet  animalstore.NewPet
	bad  error // why it cannot be added, if it cannot
}

// petReader reads pets one by one. After io.EOF, or an error which says that
// the rest cannot be read, there are no more.
type petReader interface {
	next() (petRow, error)
}

// newPetReader reads a file in a format, or in the one it looks like if that is
// "".
func newPetReader(file io.Reader, format string) (petReader, error) {
	in := bufio.NewReaderSize(file, 64<<10)
	if mark, _ := in.Peek(3); string(mark) == "\ufeff" { // as some spreadsheets begin
		in.Discard(3)
	}
	if format == "" {
		format = formatCSV
		first, err := firstVisible(in)
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			return nil, err
		case first == '{':
			format = formatJSONL
		case first == '[':
			return nil, errors.New("this begins like a JSON array: write one object a line instead (JSON Lines), or CSV")
		}
	}
	if format == formatJSONL {
		return &jsonlPets{in: in}, nil
	}
	return newCSVPets(in)
}

// firstVisible looks at the first character that is not white space.
func firstVisible(in *bufio.Reader) (byte, error) {
	for n := 1; n <= in.Size(); n++ {
		seen, err := in.Peek(n)
		if err != nil {
			return 0, err
		}
		if c := seen[n-1]; !strings.ContainsRune(" \t\r\n", rune(c)) {
			return c, nil
		}
	}
	return 0, nil
}

// csvPets reads CSV whose first line names the columns.
type csvPets struct {
	in      *bounded
	csv     *csv.Reader
	columns []string
}

func newCSVPets(in io.Reader) (*csvPets, error) {
	r := &csvPets{in: &bounded{r: in}}
	r.csv = csv.NewReader(r.in)
	r.csv.FieldsPerRecord, r.csv.ReuseRecord = -1, true
	r.in.left = maxRow
	header, err := r.csv.Read()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("there is nothing in it, not even the line that names the columns: name,categoryId,status")
	}
	if err != nil {
		return nil, fmt.Errorf("the first line, which names the columns: %w", err)
	}
	for _, name := range header {
		name = strings.TrimSpace(name)
		if slices.Contains(r.columns, name) {
			return nil, fmt.Errorf("the first line names the column %q twice", visible(name))
		}
		r.columns = append(r.columns, name)
	}
	for _, name := range []string{"name", "categoryId"} {
		if !slices.Contains(r.columns, name) {
			return nil, fmt.Errorf("the first line must name the columns, with %s among them, such as name,categoryId,status: it is %q", name, visible(strings.Join(r.columns, ",")))
		}
	}
	return r, nil
}

func (r *csvPets) next() (petRow, error) {
	r.in.left = maxRow
	fields, err := r.csv.Read()
	var parse *csv.ParseError
	switch {
	case errors.Is(err, errTooLong):
		line, _ := r.csv.FieldPos(0)
		return petRow{}, fmt.Errorf("after line %d: %w", line, err)
	case errors.As(err, &parse):
		row := petRow{line: int64(parse.StartLine), bad: errors.New("it is not CSV: " + parse.Err.Error())}
		if parse.Line > parse.StartLine {
			row.bad = fmt.Errorf("it is not CSV: a quote that is opened here is closed wrongly in line %d, and all between belongs to it", parse.Line)
		}
		return row, nil
	case err != nil:
		return petRow{}, err
	}
	line, _ := r.csv.FieldPos(0)
	row := petRow{line: int64(line)}
	if len(fields) != len(r.columns) {
		row.bad = fmt.Errorf("it has %d fields, and the first line names %d columns", len(fields), len(r.columns))
		return row, nil
	}
	for i, name := range r.columns {
		value := strings.Clone(fields[i]) // the record is used again
		switch name {
		case "name":
			row.pet.Name = value
		case "categoryId":
			id, ok := parseWhole(strings.TrimSpace(value))
			if !ok {
				row.bad = fmt.Errorf("categoryId must be a 64-bit integer, not %q", visible(value))
			}
			row.pet.CategoryID = id
		case "status":
			row.pet.Status = animalstore.PetStatus(strings.TrimSpace(value))
		}
	}
	row.check()
	return row, nil
}

// check finds what the service would refuse.
func (row *petRow) check() {
	if row.bad != nil {
		return
	}
	if !utf8.ValidString(row.pet.Name) {
		row.bad = errors.New("name is not UTF-8: save the file as UTF-8")
		return
	}
	var coded *animalstore.Error
	if err := row.pet.Validate(); errors.As(err, &coded) {
		row.bad = errors.New(coded.Message)
	}
}

// errTooLong ends a file: it cannot be told where the next pet begins.
var errTooLong = fmt.Errorf("a pet takes more than %d bytes (a quote may not be closed); what follows was not read", maxRow)

// bounded fails when more than a row is read at a time. What its reader buffers
// ahead counts for the row before, so rows may be a little longer.
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

// jsonlPets reads a JSON object a line.
type jsonlPets struct {
	in   *bufio.Reader
	line int64
}

func (r *jsonlPets) next() (petRow, error) {
	for {
		text, tooLong, err := r.readLine()
		if err != nil {
			return petRow{}, err
		}
		row := petRow{line: r.line}
		if tooLong {
			row.bad = fmt.Errorf("it has more than %d bytes", maxRow)
			return row, nil
		}
		if text = bytes.TrimSpace(text); len(text) == 0 {
			continue
		}
		row.pet, row.bad = parsePet(text)
		row.check()
		return row, nil
	}
}

// readLine reads a line, of which it keeps no more than a row may have.
func (r *jsonlPets) readLine() (text []byte, tooLong bool, err error) {
	r.line++
	for {
		part, err := r.in.ReadSlice('\n')
		if !tooLong {
			text = append(text, part...)
		}
		if len(text) > maxRow {
			text, tooLong = nil, true
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && (len(text) > 0 || tooLong):
			return text, tooLong, nil // the last line needs no end
		}
		return text, tooLong, err
	}
}

// parsePet reads an object with the members of a pet. Others are ignored.
func parsePet(text []byte) (pet animalstore.NewPet, err error) {
	if !utf8.Valid(text) {
		return pet, errors.New("it is not UTF-8: save the file as UTF-8")
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil || members == nil {
		return pet, errors.New("it is not a JSON object")
	}
	if pet.Name, err = stringMember(members, "name"); err != nil {
		return pet, err
	}
	whole, ok := parseWhole(string(members["categoryId"]))
	if !ok {
		return pet, errors.New("categoryId must be a 64-bit integer")
	}
	pet.CategoryID = whole
	if _, given := members["status"]; given {
		status, err := stringMember(members, "status")
		if err == nil && status == "" {
			err = fmt.Errorf("status must be one of %s", strings.Join(names(animalstore.PetStatuses), ", "))
		}
		if err != nil {
			return pet, err
		}
		pet.Status = animalstore.PetStatus(status)
	}
	return pet, nil
}

func stringMember(members map[string]json.RawMessage, name string) (string, error) {
	raw, given := members[name]
	var value *string
	switch err := json.Unmarshal(raw, &value); {
	case !given:
		return "", fmt.Errorf("%s is missing", name)
	case err != nil || value == nil:
		return "", fmt.Errorf("%s must be a string", name)
	}
	// encoding/json writes this character where there is half of one.
	const replaced = "\ufffd"
	if strings.Contains(*value, replaced) && !bytes.Contains(raw, []byte(replaced)) && !bytes.Contains(bytes.ToLower(raw), []byte(`\ufffd`)) {
		return "", fmt.Errorf("%s has half of a character in it (a lone surrogate)", name)
	}
	return *value, nil
}

// parseWhole reads an int64, also one that was written as 7.0.
func parseWhole(s string) (int64, bool) {
	if whole, zeros, ok := strings.Cut(s, "."); ok && zeros != "" && strings.Trim(zeros, "0") == "" {
		s = whole
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && !strings.HasPrefix(s, "+")
}

// petWriter writes pets in a format.
type petWriter struct {
	format string
	out    *bufio.Writer
	csv    *csv.Writer
}

func newPetWriter(w io.Writer, format string) *petWriter {
	p := &petWriter{format: format, out: bufio.NewWriterSize(w, 64<<10)}
	p.csv = csv.NewWriter(p.out)
	if format == formatCSV {
		p.csv.Write([]string{"id", "name", "categoryId", "status"})
	}
	return p
}

func (p *petWriter) write(pet animalstore.Pet) error {
	if p.format == formatCSV {
		return p.csv.Write([]string{decimal(pet.ID), pet.Name, decimal(pet.CategoryID), string(pet.Status)})
	}
	enc := json.NewEncoder(p.out)
	enc.SetEscapeHTML(false)
	return enc.Encode(pet)
}

func (p *petWriter) flush() error {
	p.csv.Flush()
	return errors.Join(p.csv.Error(), p.out.Flush())
}
