package petfile

import (
	"bufio"
	"crypto/rand"
	"encoding/csv"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strconv"

	"animalstore"
)

// writer writes pets in a format.
type writer struct {
	format Format
	out    *bufio.Writer
	csv    *csv.Writer
}

// newWriter writes a header if the format has one.
func newWriter(w io.Writer, format Format) *writer {
	p := &writer{format: format, out: bufio.NewWriterSize(w, 64<<10)}
	p.csv = csv.NewWriter(p.out)
	if format == CSV {
		p.csv.Write([]string{"id", "name", "categoryId", "status"})
	}
	return p
}

// write adds a pet. It is buffered until flush.
func (p *writer) write(pet animalstore.Pet) error {
	if p.format == CSV {
		return fileError(p.csv.Write([]string{strconv.FormatInt(pet.ID, 10), escapeFormula(pet.Name), strconv.FormatInt(pet.CategoryID, 10), string(pet.Status)}))
	}
	line, err := animalstore.EncodeJSON(pet)
	if err != nil {
		return err
	}
	_, err = p.out.Write(append(line, '\n'))
	return fileError(err)
}

// flush writes buffered pets.
func (p *writer) flush() error {
	p.csv.Flush()
	return fileError(errors.Join(p.csv.Error(), p.out.Flush()))
}

// Export writes pets to the named file, or to stdout if the name is "-", and calls
// written after each pet. The file appears only when it is complete; after an error
// there is no file.
func Export(name string, stdout io.Writer, format Format, pets iter.Seq2[animalstore.Pet, error], written func()) error {
	file, commit, err := create(name, stdout)
	if err != nil {
		return err
	}
	out := newWriter(file, format)
	return commit(func() error {
		for pet, err := range pets {
			if err != nil {
				return err
			}
			if err := out.write(pet); err != nil {
				return err
			}
			written()
		}
		return out.flush()
	}())
}

// create opens the file for an export, or stdout for "-". The caller must call commit
// at the end with the error of the export: nil gives the file its name, an error
// removes it.
func create(name string, stdout io.Writer) (w io.Writer, commit func(error) error, err error) {
	if name == "-" {
		return stdout, func(err error) error { return err }, nil
	}
	mode := fs.FileMode(0o666) // less the umask
	info, err := os.Stat(name)
	replaces := err == nil
	if replaces {
		mode = info.Mode().Perm()
	}
	if replaces && !info.Mode().IsRegular() {
		file, err := os.OpenFile(name, os.O_WRONLY, 0) // a device or a pipe
		return file, func(err error) error { return errors.Join(err, file.Close()) }, fileError(err)
	}
	temp := filepath.Join(filepath.Dir(name), "."+filepath.Base(name)+"-"+rand.Text())
	file, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return nil, nil, fileError(withName(err, name))
	}
	return file, func(err error) error {
		if replaces && err == nil {
			err = fileError(file.Chmod(mode)) // the umask may have cleared bits
		}
		if closeErr := errors.Join(file.Sync(), file.Close()); err == nil {
			err = fileError(closeErr)
		}
		if err == nil {
			err = fileError(os.Rename(temp, name))
		}
		if err != nil {
			os.Remove(temp)
		}
		return withName(err, name)
	}, nil
}

// withName replaces a temporary file's name in an error with the name the user gave.
// Errors that aren't about a file stay unchanged.
func withName(err error, name string) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return fileError(&fs.PathError{Op: "write", Path: name, Err: path.Err})
	case errors.As(err, &link):
		return fileError(&fs.PathError{Op: "write", Path: name, Err: link.Err})
	}
	return err
}
