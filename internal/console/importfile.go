package console

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"sync"
	"time"

	"animalstore"
	"animalstore/internal/petfile"
)

const (
	// maxFile is the size of a file to import, and maxFilePets how many pets it may have.
	maxFile     = 5 << 20
	maxFilePets = 10_000
	// maxMistakes is how many mistakes of a file are found.
	maxMistakes = 100
	// maxImports is how many files may be in memory.
	maxImports = 2
)

// importSlots limits how many files are in memory: maxImports, and one of each key.
type importSlots struct {
	mu   sync.Mutex
	keys map[int64]bool
}

// acquire reports whether there is a slot for a key. If so, the caller must release it.
func (s *importSlots) acquire(key int64) (release func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keys[key] || len(s.keys) == maxImports {
		return nil, false
	}
	s.keys[key] = true
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.keys, key)
	}, true
}

// petFile is a file that was sent.
type petFile struct {
	name     string
	sum      []byte // of its content
	done     string // the field of the form
	adding   bool   // otherwise only the first pets keep their names
	pets     []animalstore.NewPet
	mistakes []petfile.Mistake
}

// receive reads a form to its end, because a browser that can't send all of it shows no
// response. The error is about the file as a whole.
func (f *petFile) receive(r *http.Request, timeout time.Duration) error {
	form, err := readParts(r)
	if err != nil {
		return errors.New("files are sent with the form on this page")
	}
	wrong := errors.New("choose a file")
	for {
		part, err := form.next()
		switch {
		case err == io.EOF:
			return wrong
		case err != nil:
			return errors.New(refusalText(incompleteError("the file", err, timeout)))
		case part.FormName() == "file" && f.name == "" && part.FileName() != "":
			f.name = part.FileName()
			wrong = f.read(part)
		case part.FormName() == "done":
			done, _ := io.ReadAll(io.LimitReader(part, 100)) // the next part has the error
			f.done = string(done)
		}
	}
}

// read reads the pets of the file and its mistakes.
func (f *petFile) read(from io.Reader) error {
	content := &fileContent{from: from, sum: sha256.New()}
	err := f.readRows(content)
	_, _ = io.Copy(io.Discard, content) // content has the error
	if content.err != nil {
		return content.err
	}
	f.sum = content.sum.Sum(nil)
	return err
}

// readRows keeps no more of a file than may be added or shown.
func (f *petFile) readRows(content io.Reader) error {
	for row, err := range petfile.Rows(content, petfile.FormatOf(f.name)) {
		switch {
		case err != nil:
			return err
		case len(f.pets)+len(f.mistakes) == maxFilePets:
			return fmt.Errorf("the file has more than %s pets: split it", number(maxFilePets))
		case row.Err == nil:
			if !f.adding && len(f.pets) >= previewRows {
				row.Pet.Name = ""
			}
			f.pets = append(f.pets, row.Pet)
			continue
		}
		f.mistakes = append(f.mistakes, petfile.Mistake{Line: row.Line, Err: row.Err})
		if len(f.mistakes) == maxMistakes {
			return nil
		}
	}
	if len(f.pets)+len(f.mistakes) == 0 {
		return errors.New("the file has no pets")
	}
	return nil
}

// fileContent is the content of a file while it arrives.
type fileContent struct {
	from io.Reader
	sum  hash.Hash
	size int
	err  error // why it can't be a file of pets
}

var (
	errTooLarge = fmt.Errorf("the file is larger than %d MiB: split it", maxFile>>20)
	errNotText  = errors.New("this isn’t a text file: save the table as CSV (UTF-8), then choose that file")
)

func (c *fileContent) Read(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.from.Read(p)
	c.size += n
	c.sum.Write(p[:n])
	switch {
	case c.size == n && petfile.IsUTF16(p[:n]):
		c.err = petfile.ErrUTF16
	case bytes.IndexByte(p[:n], 0) >= 0:
		c.err = errNotText
	case c.size > maxFile:
		c.err = errTooLarge
	default:
		return n, err
	}
	return 0, c.err
}

// doneOf is a field that says how many pets of this file are added.
func (f *petFile) doneOf(pets int) string { return fmt.Sprintf("%x %d", f.sum, pets) }

// alreadyDone is how many pets of this file the form says are added. Sending them again
// would add nothing, but cost requests, so that a key with few of them wouldn't get further.
func (f *petFile) alreadyDone() (pets int) {
	var sum []byte
	if _, err := fmt.Sscanf(f.done, "%x %d", &sum, &pets); err != nil || f.doneOf(pets) != f.done {
		return 0
	}
	return pets
}
