package transfer

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"animalstore/internal/db"
)

// Moved describes one table of a [Move], as read and as stored.
type Moved struct {
	Table      *db.Table
	From, Into Contents
}

// ErrDiffers: the target's content differs from the source's.
var ErrDiffers = errors.New("the target's content differs from the source's")

// NotEmptyError: the target isn't empty.
type NotEmptyError struct{ Holds []string } // such as "pets: 12"

func (e *NotEmptyError) Error() string {
	return "the target is not empty (" + strings.Join(e.Holds, ", ") + ")"
}

// Progress observes a running [Move]. Calls may come from different goroutines,
// but never at the same time.
type Progress interface {
	// Copying and Comparing start the two phases, each with the given number of rows.
	Copying(rows int64)
	Comparing(rows int64)
	// Did reports that this many more rows of the phase are done.
	Did(rows int)
}

// Move copies a whole store into an empty one, reads the target back, and commits if
// both are the same. It returns both sides of each table, even with ErrDiffers. After
// an error the target is unchanged, except possibly with db.ErrOutcomeUnknown.
func Move(ctx context.Context, from db.Source, to db.Target, progress Progress) ([]Moved, error) {
	if err := checkEmpty(ctx, to); err != nil {
		return nil, err
	}
	total := int64(0)
	for i := range db.Tables {
		n, err := count(ctx, from, &db.Tables[i])
		if err != nil {
			return nil, fmt.Errorf("read the source: %w", err)
		}
		total += n
	}
	moved := make([]Moved, len(db.Tables))
	progress.Copying(total)
	for i := range db.Tables {
		t := &db.Tables[i]
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
		if m.Into, err = readContents(ctx, to, m.Table, progress); err != nil {
			return nil, fmt.Errorf("read the %s back: %w", m.Table.Holds, err)
		}
		same = same && m.From == m.Into
	}
	if !same {
		return moved, ErrDiffers
	}
	return moved, to.Commit(ctx)
}

func checkEmpty(ctx context.Context, to db.Source) error {
	var holds []string
	for i := range db.Tables {
		t := &db.Tables[i]
		n, err := count(ctx, to, t)
		if err != nil {
			return fmt.Errorf("inspect the target: %w", err)
		}
		if n > 0 {
			holds = append(holds, fmt.Sprintf("%s: %d", t.Holds, n))
		}
	}
	if holds != nil {
		return &NotEmptyError{holds}
	}
	return nil
}

func count(ctx context.Context, s db.Source, t *db.Table) (int64, error) {
	return selectInt(ctx, s, "SELECT count(*) FROM "+t.Name)
}

// selectInt returns the number that a query selects, or 0 if it selects none.
func selectInt(ctx context.Context, s db.Source, query string) (n int64, err error) {
	rows, err := s.Query(ctx, query)
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

// copyTable copies the rows of a table and returns the contents it read.
func copyTable(ctx context.Context, from db.Source, to db.Target, t *db.Table, progress Progress) (Contents, error) {
	c, err := summarize(ctx, from, t, progress, func(rows db.Cursor) error { return to.Write(ctx, t, rows) })
	if err != nil || !t.Serial {
		return c, err
	}
	return c, to.SetLastID(ctx, t, c.LastID)
}

func readContents(ctx context.Context, s db.Source, t *db.Table, progress Progress) (Contents, error) {
	return summarize(ctx, s, t, progress, func(rows db.Cursor) error {
		for rows.Next() {
			if _, err := rows.Values(); err != nil {
				return err
			}
		}
		return rows.Err()
	})
}
