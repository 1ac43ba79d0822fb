package main

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

	"animalstore/internal/db"
)

// name is the Idempotency-Key of a row: the same in every run over the same file,
// and another for another line, even one of the same content. It begins with the
// number of the line, because a database stores what comes in order much faster.
func (p *pendingRow) name() string {
	sum := linked([32]byte{}, &p.petRow)
	return fmt.Sprintf("import-%012d-%s", p.line, hex.EncodeToString(sum[:16]))
}

// linked is a checksum of all rows up to this one, by that of all before it.
func linked(before [32]byte, row *petRow) [32]byte {
	b := append(make([]byte, 0, 256), before[:]...)
	b = strconv.AppendInt(b, row.line, 10)
	b = append(append(append(b, ' '), row.pet.Status...), ' ')
	b = append(strconv.AppendInt(b, row.pet.CategoryID, 10), ' ')
	b = append(b, row.pet.Name...)
	if row.bad != nil {
		b = append(append(b, 0), row.bad.Error()...) // no name has a zero byte
	}
	return sha256.Sum256(b)
}

// journal keeps how far an import came in a file beside the imported one, so
// that the next run need not send again what is done. It is never ahead of the
// truth, and at most about a second behind: what was added in that second is
// sent again and answered without being added.
type journal struct {
	path string
	mark journalFile
}

type journalFile struct {
	Note    string    `json:"note"`
	Server  string    `json:"server"`
	Key     string    `json:"key"` // a checksum: answers are kept by key
	Rows    int64     `json:"rows"`
	Chain   string    `json:"checksum"` // of these rows
	Updated time.Time `json:"updated"`
	tally
}

func (j *journal) reached(t tally, chain [32]byte) {
	j.mark.tally, j.mark.Rows, j.mark.Chain = t, t.Added+t.There+t.Bad, hex.EncodeToString(chain[:])
}

// save writes the journal anew. One that is half written is never seen.
func (j *journal) save() error {
	j.mark.Note = "This is how far animalstore pets import came. It is removed when the import is complete."
	j.mark.Updated = time.Now().UTC().Truncate(time.Second)
	text, err := json.MarshalIndent(j.mark, "", "  ")
	if err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(j.path), filepath.Base(j.path)+"-*")
	if err != nil {
		return err
	}
	_, err = temp.Write(append(text, '\n'))
	if err = errors.Join(err, temp.Close()); err == nil {
		err = os.Rename(temp.Name(), j.path)
	}
	if err != nil {
		os.Remove(temp.Name())
	}
	return err
}

func (j *journal) remove() error {
	if err := os.Remove(j.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// resume finds how many rows an earlier run did. It did none where it left no
// word of it, or where the file has changed since.
func (i *petImport) resume() (rows int64, err error) {
	if i.journal == nil {
		return 0, nil
	}
	sum := sha256.Sum256([]byte("import by " + os.Getenv(keyVariable)))
	i.journal.mark = journalFile{Server: i.BaseURL(), Key: hex.EncodeToString(sum[:8])}
	before, err := i.journal.load()
	if err != nil || before == nil || before.Rows == 0 {
		return 0, err
	}
	same, err := i.begins(before)
	if err != nil {
		return 0, fileError(err)
	}
	if !same {
		i.note("%s has changed since an import of it was interrupted. It is sent from its beginning; lines that are as they were are not added again.", visible(i.file))
		return 0, nil
	}
	i.note("Going on after %s that an earlier run did.", countOf(before.Rows, "line", "lines"))
	i.tally, i.journal.mark = before.tally, *before
	i.progress.add(int(before.Rows))
	return before.Rows, nil
}

// load reads what an earlier run left, nil if nothing. It refuses to go on where
// that could add something twice.
func (j *journal) load() (*journalFile, error) {
	text, err := os.ReadFile(j.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var before journalFile
	if err == nil {
		err = json.Unmarshal(text, &before)
	}
	path := visible(j.path)
	if err != nil {
		return nil, fileError(fmt.Errorf("%s tells how far an earlier run came, but cannot be read: move it away to start over (%w)", path, err))
	}
	age := time.Since(before.Updated)
	switch {
	case before.Server != j.mark.Server:
		return nil, usageError{fmt.Errorf("%s is about an import to %s: go on with that --url, or move it away to start over", path, visible(before.Server))}
	case before.Key != j.mark.Key:
		return nil, usageError{fmt.Errorf("%s is about an import with another API key: only with that one it goes on without adding anything twice. Use it, or move the file away to start over", path)}
	case age > db.IdempotencyWindow-time.Hour:
		return nil, usageError{fmt.Errorf("%s is about an import that stopped %s ago after %s. By now the server may not know any more which of the next ones it added: look what is there, leave the lines that are out of the file, and move %s away", path, span(age), countOf(before.Rows, "line", "lines"), path)}
	}
	return &before, nil
}

// begins reports whether the file begins with the rows that an earlier run did.
func (i *petImport) begins(before *journalFile) (bool, error) {
	file, err := os.Open(i.file)
	if err != nil {
		return false, err
	}
	defer file.Close()
	rows, err := newPetReader(file, i.format)
	if err != nil {
		return false, err
	}
	var chain [32]byte
	for range before.Rows {
		row, err := rows.next()
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("%s: %w", visible(i.file), err)
		}
		chain = linked(chain, &row)
	}
	return hex.EncodeToString(chain[:]) == before.Chain, nil
}
