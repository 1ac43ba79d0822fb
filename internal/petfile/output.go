package petfile

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"

	"animalstore"
)

// Output is the file that gets the rows of an import with the id of each pet. It appears only
// when it is complete: a run that continues an import gets all ids once more.
type Output struct {
	input  string
	name   string
	format Format // of the input; "" until that is detected
	// A copy of the input: a pipe can't be read twice, and a file may change during the import.
	copied *os.File
	file   io.Writer
	commit func(error) error // nil once it was called
}

// errNotImported discards an output.
var errNotImported = errors.New("nothing was imported")

// CreateOutput copies the input, or stdin for "-", and creates the output, so that what is
// wrong with either is known before the import. The caller must call Close.
func CreateOutput(name string, stdout io.Writer, input string, stdin io.Reader, format Format) (*Output, error) {
	if input != "-" {
		file, err := os.Open(input)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		stdin = file
	}
	o := &Output{input: input, name: name, format: cmp.Or(format, FormatOf(input))}
	var err error
	if o.copied, err = os.CreateTemp("", "animalstore-import-"); err != nil {
		return nil, fileError(err)
	}
	if _, err = io.Copy(o.copied, stdin); err == nil {
		o.file, o.commit, err = create(name, stdout)
	}
	if err != nil {
		return nil, errors.Join(fileError(err), o.Close())
	}
	return o, nil
}

// Close removes the copy of the input, and the output if Write didn't complete it.
func (o *Output) Close() error {
	if o.commit != nil {
		o.commit(errNotImported)
	}
	return errors.Join(o.copied.Close(), os.Remove(o.copied.Name()))
}

// Read is [ReadFile] for the input of an output. An input that has ids is a mistake.
func (o *Output) Read() (pets []animalstore.NewPet, mistakes []Mistake, err error) {
	rows, err := o.rows()
	for err == nil {
		var r Row
		if r, err = rows.next(); err != nil {
			break
		}
		if lines, ok := rows.(*jsonlReader); ok && r.Err == nil && lines.hasID() {
			r.Err = errors.New(`it has a field "id": rename that, for example to oldId, because the output adds one`)
		}
		if r.Err != nil {
			mistakes = append(mistakes, Mistake{r.Line, r.Err})
		} else {
			pets = append(pets, r.Pet)
		}
	}
	if !errors.Is(err, io.EOF) {
		return nil, nil, fileError(fmt.Errorf("%s: %w", o.input, err))
	}
	return pets, mistakes, nil
}

// rows reads the input from its beginning.
func (o *Output) rows() (reader, error) {
	if _, err := o.copied.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	rows, err := newReader(o.copied, o.format)
	if err != nil {
		return nil, err
	}
	format := JSONL
	if table, ok := rows.(*csvReader); ok {
		format = CSV
		if slices.Contains(table.columns, "id") {
			return nil, errors.New(`it has a column "id": rename that, for example to oldId, because the output adds one`)
		}
	}
	if wanted := FormatOf(o.name); wanted != "" && wanted != format {
		return nil, fmt.Errorf("its format is %s, and so is that of the output: name %s differently", format, o.name)
	}
	return rows, nil
}

// Write writes the rows of the input with the ids of their pets. The output appears unless
// there is an error.
func (o *Output) Write(pets []animalstore.Pet) error {
	commit := o.commit
	o.commit = nil
	return commit(o.write(pets))
}

func (o *Output) write(pets []animalstore.Pet) error {
	rows, err := o.rows()
	if err != nil {
		return fileError(err)
	}
	out := bufio.NewWriterSize(o.file, 64<<10)
	if table, ok := rows.(*csvReader); ok {
		if o.hasMark() {
			out.WriteString(mark)
		}
		out.Write(table.latestWith("id"))
	}
	for _, pet := range pets {
		if _, err := rows.next(); err != nil {
			return fileError(fmt.Errorf("%s: %w", o.input, err))
		}
		if _, err := out.Write(rows.latestWith(strconv.FormatInt(pet.ID, 10))); err != nil {
			return fileError(err)
		}
	}
	return fileError(out.Flush())
}

// hasMark reports whether the input begins with a byte order mark.
func (o *Output) hasMark() bool {
	start := make([]byte, len(mark))
	_, err := o.copied.ReadAt(start, 0)
	return err == nil && string(start) == mark
}
