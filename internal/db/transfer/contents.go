package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"strings"

	"animalstore/internal/db"
)

// Contents summarizes a table: two tables with equal Contents have the same rows
// and assign the same id next.
type Contents struct {
	Rows   int64
	LastID int64 // of a serial table, otherwise 0
	Sum    [sha256.Size]byte
}

// summarize passes the rows of a table to consume, which must read all of them, and
// returns the table's contents.
func summarize(ctx context.Context, s db.Source, t *db.Table, progress Progress, consume func(db.Cursor) error) (Contents, error) {
	rows, err := s.Query(ctx, allRowsQuery(t))
	if err != nil {
		return Contents{}, err
	}
	defer rows.Close()
	sums := &summingCursor{Cursor: rows, progress: progress, sum: sha256.New()}
	if err := consume(sums); err != nil {
		return Contents{}, err
	}
	rows.Close() // before the next query
	c := Contents{Rows: sums.rows, Sum: [sha256.Size]byte(sums.sum.Sum(nil))}
	if t.Serial {
		c.LastID, err = s.LastID(ctx, t)
	}
	return c, err
}

// allRowsQuery returns the query for all rows of a table, ordered by key. The order is the
// same in all engines: they compare text and bytes byte by byte.
func allRowsQuery(t *db.Table) string {
	return "SELECT " + strings.Join(t.ColumnNames(), ", ") + " FROM " + t.Name + " ORDER BY " + strings.Join(t.Key, ", ")
}

// summingCursor hashes and counts the rows that are read through it.
type summingCursor struct {
	db.Cursor
	progress Progress
	rows     int64
	reported int64
	sum      hash.Hash
	buf      []byte
}

// reportEvery is after how many rows a report to [Progress] comes. A row can be a part of a
// photo.
const reportEvery = 100

func (s *summingCursor) Next() bool {
	if s.Cursor.Next() {
		return true
	}
	s.report()
	return false
}

func (s *summingCursor) Values() ([]any, error) {
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
	if s.rows++; s.rows-s.reported >= reportEvery {
		s.report()
	}
	return values, nil
}

func (s *summingCursor) report() {
	s.progress.Did(int(s.rows - s.reported))
	s.reported = s.rows
}

// appendValue encodes a value so that different rows of a table have different
// encodings: its kind, its length unless the kind implies it, and its bytes.
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
	return nil, fmt.Errorf("unexpected value of type %T: no table has this type", v)
}
