package petfile

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// Journal stores the progress of an import in a file next to the imported one, so that
// the next run doesn't send finished rows again. It never claims a row that isn't done,
// and is at most about a second behind: pets added in that second are sent again, and
// the server recognizes them.
type Journal struct {
	// Server and Credential identify the destination: the server recognizes a repeated
	// request only if both are the same. Only a checksum of the credential is stored.
	Server, Credential string
	// MaxAge is the age up to which a journal may be continued. It must be shorter than
	// the time for which the server recognizes repeated requests.
	MaxAge time.Duration

	path  string
	state journalState
}

// NewJournal returns the journal of an import of the named file.
func NewJournal(file string) *Journal { return &Journal{path: file + ".progress"} }

type journalState struct {
	Note     string    `json:"note"`
	Server   string    `json:"server"`
	Key      string    `json:"key"` // a checksum of the credential
	Rows     int64     `json:"rows"`
	Checksum string    `json:"checksum"` // of these rows
	Updated  time.Time `json:"updated"`
	Tally
}

// MismatchError explains why a journal can't be continued without the risk of adding
// pets twice.
type MismatchError struct{ text string }

func (e MismatchError) Error() string { return e.text }

func (j *Journal) reached(t Tally, sum checksum) {
	j.state.Tally, j.state.Rows, j.state.Checksum = t, t.Added+t.Existing+t.Refused, hex.EncodeToString(sum[:])
}

// save replaces the journal atomically.
func (j *Journal) save() error {
	j.state.Note = "This is how far \"animalstore pets import\" has come. It is removed when the import is complete."
	j.state.Updated = time.Now().UTC().Truncate(time.Second)
	text, err := json.MarshalIndent(j.state, "", "  ")
	if err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(j.path), filepath.Base(j.path)+"-*")
	if err != nil {
		return withName(err, j.path)
	}
	_, err = temp.Write(append(text, '\n'))
	if err = errors.Join(err, temp.Close()); err == nil {
		err = os.Rename(temp.Name(), j.path)
	}
	if err != nil {
		os.Remove(temp.Name())
	}
	return withName(err, j.path)
}

func (j *Journal) remove() error {
	if err := os.Remove(j.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fileError(err)
	}
	return nil
}

// load reads the journal of an earlier run; nil if there is none. It refuses a journal
// that could lead to pets being added twice.
func (j *Journal) load() (*journalState, error) {
	sum := sha256.Sum256([]byte("import by " + j.Credential))
	j.state = journalState{Server: j.Server, Key: hex.EncodeToString(sum[:8])}
	text, err := os.ReadFile(j.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var before journalState
	if err == nil {
		err = json.Unmarshal(text, &before)
	}
	if err != nil {
		return nil, fileError(fmt.Errorf("%s records the progress of an earlier import, but can't be read: move it away to start over (%w)", j.path, err))
	}
	age := time.Since(before.Updated)
	switch {
	case before.Server != j.state.Server:
		return nil, MismatchError{fmt.Sprintf("%s is from an import to %s: continue with that server, or move the file away to start over", j.path, before.Server)}
	case before.Key != j.state.Key:
		return nil, MismatchError{fmt.Sprintf("%s is from an import with another API key, and only with that key can it continue without adding pets twice. Use that key, or move the file away to start over", j.path)}
	case age > j.MaxAge:
		return nil, MismatchError{fmt.Sprintf("%s is from an import that stopped %d hours ago (lines done: %d). The server may no longer know which of the next lines it added: check which pets exist, delete their lines from the file, and move %s away", j.path, age/time.Hour, before.Rows, j.path)}
	}
	return &before, nil
}

// covers reports whether the file still begins with the rows of the journal.
func (before *journalState) covers(f *File) (bool, error) {
	file, err := os.Open(f.Name)
	if err != nil {
		return false, err
	}
	defer file.Close()
	rows, err := NewReader(file, f.Format)
	if err != nil {
		return false, err
	}
	var sum checksum
	for range before.Rows {
		row, err := rows.Next()
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("%s: %w", f.Name, err)
		}
		sum = sum.next(&row)
	}
	return hex.EncodeToString(sum[:]) == before.Checksum, nil
}

// checksum covers all rows up to and including one.
type checksum [sha256.Size]byte

func (sum checksum) next(row *Row) checksum {
	b := append(make([]byte, 0, 256), sum[:]...)
	b = strconv.AppendInt(b, row.Line, 10)
	b = append(append(append(b, ' '), row.Pet.Status...), ' ')
	b = append(strconv.AppendInt(b, row.Pet.CategoryID, 10), ' ')
	b = append(b, row.Pet.Name...)
	if row.Err != nil {
		b = append(append(b, 0), row.Err.Error()...) // no name contains a zero byte
	}
	return sha256.Sum256(b)
}

// idempotencyKey identifies the request for a row. It is the same in every run over the
// same file, and different for every line, even if two lines have the same content. It
// starts with the line number, because databases store ascending keys faster.
func (row *Row) idempotencyKey() string {
	sum := checksum{}.next(row)
	return fmt.Sprintf("import-%012d-%s", row.Line, hex.EncodeToString(sum[:16]))
}
