// Package petfile reads and writes files of pets, as CSV or JSON Lines, and
// imports them so that an interrupted import can be continued.
package petfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"animalstore"
)

// maxRow limits one pet in a file, in bytes. The API has the same limit.
const maxRow = 1 << 20

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

// Row is a pet in a file.
type Row struct {
	Line int64 // where it begins
	Pet  animalstore.NewPet
	Err  error // why it can't be added; nil if it can
}

// Reader reads rows one by one. There are no more rows after io.EOF, or after an error
// that says the rest can't be read.
type Reader interface {
	Next() (Row, error)
}

// NewReader reads the given format, or detects it if format is "".
func NewReader(file io.Reader, format Format) (Reader, error) {
	in := bufio.NewReaderSize(file, 64<<10)
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
		return &jsonlReader{in: in}, nil
	}
	return newCSVReader(in)
}

// skipMark skips a byte order mark, which some spreadsheets write.
func skipMark(in *bufio.Reader) {
	if mark, _ := in.Peek(3); string(mark) == "\ufeff" {
		in.Discard(3)
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

// setPet sets Pet, or Err if the API would refuse the pet, with the same message.
func (row *Row) setPet(pet animalstore.NewPet, err error) {
	if err == nil {
		err = pet.Validate()
	}
	var coded *animalstore.Error
	if errors.As(err, &coded) {
		err = errors.New(coded.Message)
	}
	row.Pet, row.Err = pet, err
}

// File is a file of pets that is open for reading.
type File struct {
	Name   string
	Pets   int64 // including those that can't be added; -1 if unknown, as for a pipe
	Format Format
	Rows   Reader
	io.Closer
}

// Open opens a file, or stdin for "-".
func Open(name string, stdin io.Reader, format Format) (*File, error) {
	if format == "" {
		format = FormatOf(name)
	}
	f := &File{Name: name, Pets: -1, Format: format, Closer: io.NopCloser(nil)}
	in := stdin
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		in, f.Closer = file, file
		f.Pets = countPets(name, format)
	}
	var err error
	if f.Rows, err = NewReader(in, format); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}

// countPets returns the number of rows in a file, so that progress can show how many
// are left; -1 if the file can't be read twice, such as a pipe.
func countPets(name string, format Format) (pets int64) {
	if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() {
		return -1
	}
	file, err := os.Open(name)
	if err != nil {
		return -1
	}
	defer file.Close()
	rows, err := NewReader(file, format)
	for err == nil {
		if _, err = rows.Next(); err == nil {
			pets++
		}
	}
	return pets
}
