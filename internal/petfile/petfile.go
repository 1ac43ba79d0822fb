// Package petfile reads and writes files of pets, as CSV or JSON Lines.
package petfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"animalstore"
)

// maxRow limits one pet in a file, in bytes: that much is in memory while it is read.
const maxRow = 256 << 10

// Format is the format of a file.
type Format string

// The formats.
const (
	CSV   Format = "csv"
	JSONL Format = "jsonl"
)

// Formats lists all formats.
var Formats = []Format{CSV, JSONL}

// FormatOf guesses a format from the name of a file; "" if the name doesn't say.
func FormatOf(name string) Format {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".csv":
		return CSV
	case ".jsonl", ".ndjson":
		return JSONL
	}
	return ""
}

// Error is a problem with a file rather than with the server.
type Error struct{ error }

func (e Error) Unwrap() error { return e.error }

func fileError(err error) error {
	if err == nil {
		return nil
	}
	return Error{err}
}

// Mistake is why a pet in a file can't be added.
type Mistake struct {
	Line int64 // where the pet begins
	Err  error
}

// ReadFile reads the pets of a file, or of stdin for "-". It detects the format if that is
// "". The error is about the file as a whole.
func ReadFile(name string, stdin io.Reader, format Format) ([]animalstore.NewPet, []Mistake, error) {
	if format == "" {
		format = FormatOf(name)
	}
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, nil, err
		}
		defer file.Close()
		stdin = file
	}
	pets, mistakes, err := Read(stdin, format)
	if err != nil {
		return nil, nil, fileError(fmt.Errorf("%s: %w", name, err))
	}
	return pets, mistakes, nil
}

// Read is ReadFile for a file that is already open.
func Read(file io.Reader, format Format) (pets []animalstore.NewPet, mistakes []Mistake, err error) {
	for row, err := range Rows(file, format) {
		switch {
		case err != nil:
			return nil, nil, err
		case row.Err != nil:
			mistakes = append(mistakes, Mistake{row.Line, row.Err})
		default:
			pets = append(pets, row.Pet)
		}
	}
	return pets, mistakes, nil
}

// Row is a pet in a file.
type Row struct {
	Line int64 // where it begins
	Pet  animalstore.NewPet
	Err  error // why it can't be added; nil if it can
}

// Rows reads the pets of a file one by one, and no more of the file than that takes. The error
// is about the file as a whole, and the last.
func Rows(file io.Reader, format Format) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		rows, err := newReader(file, format)
		for err == nil {
			var r Row
			if r, err = rows.next(); err == nil && !yield(r, nil) {
				return
			}
		}
		if !errors.Is(err, io.EOF) {
			yield(Row{}, err)
		}
	}
}

// reader reads rows one by one. There are no more rows after io.EOF, or after an error
// that says the rest can't be read.
type reader interface {
	next() (Row, error)
	// latestWith returns the text of the latest row with its id.
	latestWith(id string) []byte
}

// newReader reads the given format, or detects it if format is "".
func newReader(file io.Reader, format Format) (reader, error) {
	in := bufio.NewReaderSize(file, 64<<10)
	if start, _ := in.Peek(2); IsUTF16(start) {
		return nil, ErrUTF16
	}
	skipMark(in)
	if format == "" {
		format = CSV
		first, err := firstVisible(in)
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			return nil, err
		case first == '{':
			format = JSONL
		case first == '[':
			return nil, errors.New("this looks like a JSON array: write one object per line instead (JSON Lines), or CSV")
		}
	}
	if format == JSONL {
		return newJSONLReader(in), nil
	}
	return newCSVReader(in)
}

// mark is a byte order mark, which some spreadsheets write.
const mark = "\ufeff"

func skipMark(in *bufio.Reader) {
	if start, _ := in.Peek(len(mark)); string(start) == mark {
		in.Discard(len(mark))
	}
}

// firstVisible peeks at the first character that isn't white space.
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

// setPet sets the pet, or the error if the API would refuse it, with the same message.
func (r *Row) setPet(pet animalstore.NewPet, err error) {
	if err == nil {
		err = pet.Validate()
	}
	var coded *animalstore.Error
	switch {
	case err == nil:
		r.Pet = pet
	case errors.As(err, &coded):
		r.Err = errors.New(coded.Message)
	default:
		r.Err = err
	}
}
