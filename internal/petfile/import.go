package petfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"animalstore"
)

// maxPending is how many rows may be read before the first of them is done. One row can
// take minutes while the server is unavailable.
const maxPending = 4096

// AddFunc adds a pet. Repeating it with the same idempotency key adds nothing and
// returns existed. A [Refusal] skips the row; any other error ends the import.
type AddFunc func(ctx context.Context, pet animalstore.NewPet, idempotencyKey string) (existed bool, err error)

// Refusal is the reason why a row can't be added.
type Refusal string

func (r Refusal) Error() string { return string(r) }

// Observer is notified of the progress of an import. Its methods are called one at a time.
type Observer interface {
	// Resumed is called if an earlier run finished the first rows.
	Resumed(rows int64)
	// Restarted is called if an earlier run was interrupted but the file has changed
	// since.
	Restarted()
	// Done is called after each row. refusal is nil if the pet now exists.
	Done(line int64, refusal error)
}

// Import adds the pets of a file. It reads rows in order, sends them with several
// workers at once, and settles them in order again, so that the journal can record that
// everything before a row is done.
type Import struct {
	File     *File
	Add      AddFunc
	Workers  int
	Observer Observer
	Journal  *Journal // nil: an interrupted import can't be continued

	slots chan struct{} // holds a token for each pending row

	mu      sync.Mutex
	pending []*pendingRow // in the order of the file
	tally   Tally         // of the rows before pending
	savedAt time.Time     // when the journal was written last
}

// Tally counts the rows of a file.
type Tally struct {
	Added    int64 `json:"added"`
	Existing int64 `json:"there"` // added by an earlier run
	Refused  int64 `json:"bad"`
}

// pendingRow is a row that was read but isn't settled yet.
type pendingRow struct {
	Row
	sum     checksum // of the file up to here
	done    bool
	existed bool
}

func (t *Tally) count(row *pendingRow) {
	switch {
	case !row.done:
	case row.Err != nil:
		t.Refused++
	case row.existed:
		t.Existing++
	default:
		t.Added++
	}
}

// Result is the result of an import.
type Result struct {
	Tally
	Complete   bool  // the whole file was processed
	JournalErr error // why the journal isn't up to date, if it isn't
}

// Run imports as much as it can. The result is nil if the import couldn't start.
func (i *Import) Run(ctx context.Context) (*Result, error) {
	done, err := i.resume()
	if err != nil {
		return nil, err
	}
	i.slots = make(chan struct{}, maxPending)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	work := make(chan *pendingRow)
	var workers sync.WaitGroup
	for range i.Workers {
		workers.Go(func() {
			for row := range work {
				if err := i.send(ctx, row); err != nil {
					stop(err)
				}
			}
		})
	}
	err = i.read(ctx, done, work)
	close(work)
	workers.Wait()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return i.finish(err)
}

// resume returns how many rows an earlier run finished: none if it left no journal or
// if the file has changed since.
func (i *Import) resume() (rows int64, err error) {
	if i.Journal == nil {
		return 0, nil
	}
	before, err := i.Journal.load()
	if err != nil || before == nil || before.Rows == 0 {
		return 0, err
	}
	same, err := before.covers(i.File)
	if err != nil {
		return 0, fileError(err)
	}
	if !same {
		i.Observer.Restarted()
		return 0, nil
	}
	i.tally, i.Journal.state = before.Tally, *before
	i.Observer.Resumed(before.Rows)
	return before.Rows, nil
}

// read hands the rows to the workers, skipping those already done.
func (i *Import) read(ctx context.Context, done int64, work chan<- *pendingRow) error {
	var sum checksum
	for n := int64(1); ctx.Err() == nil; n++ {
		row, err := i.File.Rows.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fileError(fmt.Errorf("%s: %w", i.File.Name, err))
		}
		sum = sum.next(&row)
		if n <= done {
			continue
		}
		select {
		case i.slots <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		p := &pendingRow{Row: row, sum: sum}
		i.mu.Lock()
		i.pending = append(i.pending, p)
		i.mu.Unlock()
		if row.Err != nil {
			i.settle(p, false, row.Err)
			continue
		}
		select {
		case work <- p:
		case <-ctx.Done():
		}
	}
	return nil
}

// send adds a row's pet. An error ends the import.
func (i *Import) send(ctx context.Context, row *pendingRow) error {
	existed, err := i.Add(ctx, row.Pet, row.idempotencyKey())
	var refusal Refusal
	if err != nil && !errors.As(err, &refusal) {
		return err
	}
	i.settle(row, existed, err)
	return nil
}

// settle marks a row as done and regularly writes the journal.
func (i *Import) settle(row *pendingRow, existed bool, refusal error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	row.done, row.existed, row.Err = true, existed, refusal
	i.Observer.Done(row.Line, refusal)
	for len(i.pending) > 0 && i.pending[0].done {
		first := i.pending[0]
		i.pending[0], i.pending = nil, i.pending[1:]
		<-i.slots
		i.tally.count(first)
		if i.Journal != nil {
			i.Journal.reached(i.tally, first.sum)
		}
	}
	if now := time.Now(); i.Journal != nil && now.Sub(i.savedAt) >= time.Second {
		i.savedAt = now
		_ = i.Journal.save() // finish reports the error if it persists
	}
}

// finish counts all rows, including finished rows behind an unfinished one. All workers
// have stopped by then.
func (i *Import) finish(err error) (*Result, error) {
	result := &Result{Tally: i.tally, Complete: err == nil}
	for _, row := range i.pending {
		result.count(row)
	}
	switch {
	case i.Journal == nil:
		return result, err
	case err == nil:
		return result, i.Journal.remove()
	}
	result.JournalErr = i.Journal.save()
	return result, err
}
