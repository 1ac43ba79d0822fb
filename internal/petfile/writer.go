package petfile

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"animalstore"
)

// Writer writes pets in a format.
type Writer struct {
	format Format
	out    *bufio.Writer
	csv    *csv.Writer
}

// NewWriter starts with a header where the format has one.
func NewWriter(w io.Writer, format Format) *Writer {
	p := &Writer{format: format, out: bufio.NewWriterSize(w, 64<<10)}
	p.csv = csv.NewWriter(p.out)
	if format == CSV {
		p.csv.Write([]string{"id", "name", "categoryId", "status"})
	}
	return p
}

// Write adds a pet. It is buffered until Flush.
func (p *Writer) Write(pet animalstore.Pet) error {
	if p.format == CSV {
		return fileError(p.csv.Write([]string{strconv.FormatInt(pet.ID, 10), pet.Name, strconv.FormatInt(pet.CategoryID, 10), string(pet.Status)}))
	}
	enc := json.NewEncoder(p.out)
	enc.SetEscapeHTML(false)
	return fileError(enc.Encode(pet))
}

// Flush writes buffered pets.
func (p *Writer) Flush() error {
	p.csv.Flush()
	return fileError(errors.Join(p.csv.Error(), p.out.Flush()))
}

// Create opens the file that an export is written to, or for "-" stdout. commit
// has to be called at the end, with the error of the export: without one the
// file gets its name, and otherwise it is removed.
func Create(name string, stdout io.Writer) (w io.Writer, commit func(error) error, err error) {
	if name == "-" {
		return stdout, func(err error) error { return err }, nil
	}
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		file, err := os.OpenFile(name, os.O_WRONLY, 0) // a device or a pipe
		return file, func(err error) error { return errors.Join(err, file.Close()) }, fileError(err)
	}
	file, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*")
	if err != nil {
		return nil, nil, fileError(err)
	}
	return file, func(err error) error {
		if closeErr := errors.Join(file.Sync(), file.Close()); err == nil {
			err = fileError(closeErr)
		}
		if err == nil {
			err = fileError(errors.Join(os.Chmod(file.Name(), 0o644), os.Rename(file.Name(), name)))
		}
		if err != nil {
			os.Remove(file.Name())
		}
		return err
	}, nil
}
