package db

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"strings"
)

// Contents tell what a table holds: two tables with the same contents hold the
// same rows, and go on with the same id.
type Contents struct {
	Rows   int64
	LastID int64 // of a serial table, else 0
	Sum    [sha256.Size]byte
}

// Moved is what became of one table.
type Moved struct {
	Table      *Table
	From, Into Contents
}

// ErrDiffers: the target does not hold what the source does.
var ErrDiffers = errors.New("what the target holds is not what the source holds")

// NotEmptyError refuses a target that holds something.
type NotEmptyError struct{ Holds []string } // such as "pets: 12"

func (e *NotEmptyError) Error() string {
	return "the target is not empty (" + strings.Join(e.Holds, ", ") + ")"
}

// Progress is told how far a move has come. It may be called from any goroutine,
// but from one at a time.
type Progress interface {
	// Copying and Comparing begin a part of the work, on so many rows.
	Copying(rows int64)
	Comparing(rows int64)
	// Did tells of some rows more.
	Did(rows int)
}

// Move copies a whole store into an empty one, reads back what that holds then,
// and commits if it is the same. What it returns tells of both sides, also where
// they differ. After an error the target is as it was, unless that is
// ErrOutcomeUnknown.
func Move(ctx context.Context, from Source, to Target, progress Progress) ([]Moved, error) {
	if err := checkEmpty(ctx, to); err != nil {
		return nil, err
	}
	total := int64(0)
	for i := range Tables {
		n, err := count(ctx, from, &Tables[i])
		if err != nil {
			return nil, fmt.Errorf("read the source: %w", err)
		}
		total += n
	}
	moved := make([]Moved, len(Tables))
	progress.Copying(total)
	for i := range Tables {
		t := &Tables[i]
		moved[i].Table = t
		var err error
		if moved[i].From, err = copyTable(ctx, from, to, t, progress); err != nil {
			return nil, fmt.Errorf("copy the %s: %w", t.Holds, err)
		}
	}
	progress.Comparing(total)
	same := true
	for i := range moved {
		m := &moved[i]
		var err error
		if m.Into, err = contents(ctx, to, m.Table, progress); err != nil {
			return nil, fmt.Errorf("read the %s back: %w", m.Table.Holds, err)
		}
		same = same && m.From == m.Into
	}
	if !same {
		return moved, ErrDiffers
	}
	return moved, to.Commit(ctx)
}

func checkEmpty(ctx context.Context, to Source) error {
	var holds []string
	for i := range Tables {
		n, err := count(ctx, to, &Tables[i])
		if err != nil {
			return fmt.Errorf("look into the target: %w", err)
		}
		if n > 0 {
			holds = append(holds, fmt.Sprintf("%s: %d", Tables[i].Holds, n))
		}
	}
	if holds != nil {
		return &NotEmptyError{holds}
	}
	return nil
}

func count(ctx context.Context, s Source, t *Table) (n int64, err error) {
	rows, err := s.Query(ctx, "SELECT count(*) FROM "+t.Name)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		values, err := rows.Values()
		if err != nil {
			return 0, err
		}
		n = values[0].(int64)
	}
	return n, rows.Err()
}

// copyTable writes a table's rows and returns what it read.
func copyTable(ctx context.Context, from Source, to Target, t *Table, progress Progress) (Contents, error) {
	rows, err := from.Query(ctx, t.rows())
	if err != nil {
		return Contents{}, err
	}
	defer rows.Close()
	summing := newSummed(rows, progress)
	if err := to.Write(ctx, t, summing); err != nil {
		return Contents{}, err
	}
	c := summing.contents()
	rows.Close()
	if t.Serial {
		if c.LastID, err = from.LastID(ctx, t); err != nil {
			return Contents{}, err
		}
		if err := to.SetLastID(ctx, t, c.LastID); err != nil {
			return Contents{}, err
		}
	}
	return c, nil
}

// contents reads a table to its end.
func contents(ctx context.Context, s Source, t *Table, progress Progress) (Contents, error) {
	rows, err := s.Query(ctx, t.rows())
	if err != nil {
		return Contents{}, err
	}
	defer rows.Close()
	summing := newSummed(rows, progress)
	for summing.Next() {
		if _, err := summing.Values(); err != nil {
			return Contents{}, err
		}
	}
	if err := summing.Err(); err != nil {
		return Contents{}, err
	}
	c := summing.contents()
	rows.Close()
	if t.Serial {
		c.LastID, err = s.LastID(ctx, t)
	}
	return c, err
}

// summed is a cursor that sums up what is read.
type summed struct {
	Cursor
	progress Progress
	rows     int64
	told     int64
	sum      hash.Hash
	buf      []byte
}

// tellEvery is how many rows pass between two words to Progress.
const tellEvery = 1000

func newSummed(rows Cursor, progress Progress) *summed {
	return &summed{Cursor: rows, progress: progress, sum: sha256.New()}
}

func (s *summed) Next() bool {
	if s.Cursor.Next() {
		return true
	}
	s.tell()
	return false
}

func (s *summed) Values() ([]any, error) {
	values, err := s.Cursor.Values()
	if err != nil {
		return nil, err
	}
	s.buf = s.buf[:0]
	for _, v := range values {
		if s.buf, err = appendValue(s.buf, v); err != nil {
			return nil, err
		}
	}
	s.sum.Write(s.buf)
	if s.rows++; s.rows-s.told >= tellEvery {
		s.tell()
	}
	return values, nil
}

func (s *summed) tell() {
	s.progress.Did(int(s.rows - s.told))
	s.told = s.rows
}

func (s *summed) contents() Contents {
	return Contents{Rows: s.rows, Sum: [sha256.Size]byte(s.sum.Sum(nil))}
}

// appendValue writes a value so that no two rows of a table look the same unless
// they are: its kind, and the length of what has none of its own.
func appendValue(b []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case int64:
		return binary.BigEndian.AppendUint64(append(b, 'i'), uint64(v)), nil
	case string:
		b = binary.BigEndian.AppendUint64(append(b, 't'), uint64(len(v)))
		return append(b, v...), nil
	case []byte:
		b = binary.BigEndian.AppendUint64(append(b, 'b'), uint64(len(v)))
		return append(b, v...), nil
	case nil:
		return append(b, 'n'), nil
	}
	return nil, fmt.Errorf("a value of type %T, which no table holds", v)
}
