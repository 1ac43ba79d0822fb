package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"animalstore"
	"animalstore/client"

	"github.com/spf13/cobra"
)

const (
	defaultWorkers = 16
	maxWorkers     = 64
	// maxPending is how many rows are read before the first of them is done: one
	// may take minutes, if the server has to be waited for.
	maxPending = 4096
)

func petsImportCommand(conn *connection) *cobra.Command {
	var format string
	workers := defaultWorkers
	cmd := &cobra.Command{
		Use:   "import FILE|-",
		Short: "Add the pets of a file",
		Long: `Add the pets of a file, or of standard input (-), to a server's store.

CSV has a first line that names its columns: name and categoryId, and status if
there is one. JSON Lines has an object with these members on each line. Other
columns and members, such as the id of an export, are ignored.

Lines that cannot be added are told with their number and the reason; the others
are added. The requests keep to the limits of the key, and wait where those are
used up.

An import that was interrupted can be run again within 24 hours: it goes on, and
in the end each line is there once. How far it came is kept in a file beside the
imported one, named FILE.progress, which is removed at the end. Without that, as
with standard input, the lines that are there already are sent again and
answered without being added. To add the same file a second time on purpose,
copy it and change a line, or wait for a day.`,
		Example: `  animalstore pets import pets.csv
  animalstore pets export | animalstore pets import --format csv -
  animalstore pets import pets.jsonl --concurrency 4`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if workers < 1 || workers > maxWorkers {
				return usageError{fmt.Errorf("--concurrency must be 1 to %d, not %d", maxWorkers, workers)}
			}
			file, size, err := openPets(cmd, args[0])
			if err != nil {
				return err
			}
			defer file.Close()
			if format == "" {
				format = formatOf(args[0])
			}
			rows, err := newPetReader(file, format)
			if err != nil {
				return fmt.Errorf("%s: %w", visible(args[0]), err)
			}
			conn.bulk = true
			return conn.do(cmd, false, func(s session) error {
				i := &petImport{
					session: s, file: args[0], format: format, rows: rows, workers: workers,
					room:     make(chan struct{}, maxPending),
					progress: newProgress(cmd.ErrOrStderr(), size, "pets"),
				}
				if size >= 0 {
					i.journal = &journal{path: args[0] + ".progress"}
				}
				return i.run(cmd.Context())
			})
		},
	}
	flags := cmd.Flags()
	flags.Var(oneOf[string]{&format, petFormats, "format"}, "format", "csv or jsonl (default by the file's name, or by how it begins)")
	flags.IntVar(&workers, "concurrency", defaultWorkers, "how many requests are under way at once; 1 keeps the order of the file")
	return cmd
}

func oneFile(cmd *cobra.Command, args []string) error {
	if len(args) != 1 || args[0] == "" {
		return usageError{fmt.Errorf("name one file, or - for standard input. See %q", cmd.CommandPath()+" --help")}
	}
	return nil
}

// openPets opens a file and counts its lines, as far as that can be known.
func openPets(cmd *cobra.Command, name string) (io.ReadCloser, int64, error) {
	if name == "-" {
		return io.NopCloser(cmd.InOrStdin()), -1, nil
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, 0, err
	}
	lines, err := countLines(file)
	if err != nil {
		file.Close()
		return nil, 0, err
	}
	return file, lines, nil
}

// countLines goes through a file and back. One that cannot go back, such as a
// pipe, has -1 lines.
func countLines(file *os.File) (lines int64, err error) {
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return -1, err
	}
	part := make([]byte, 256<<10)
	for {
		n, err := file.Read(part)
		lines += int64(bytes.Count(part[:n], []byte("\n")))
		if errors.Is(err, io.EOF) {
			_, err = file.Seek(0, io.SeekStart)
			return lines, err
		}
		if err != nil {
			return 0, err
		}
	}
}

// petImport is the run of one import. Rows are read in order, sent by several
// workers at once, and settled in order again, so that the journal can say that
// everything before a row is done.
type petImport struct {
	session
	file     string
	format   string
	rows     petReader
	workers  int
	room     chan struct{} // holds a token for each pending row
	progress *progress
	journal  *journal // nil without one

	mu      sync.Mutex
	pending []*pendingRow // in the order of the file
	tally   tally         // of the rows before pending
	told    time.Time     // when the journal was written last
	failed  error         // what keeps the journal from being written
}

// tally counts what became of rows.
type tally struct {
	Added int64 `json:"added"`
	There int64 `json:"there"` // added by an earlier run
	Bad   int64 `json:"bad"`
}

// pendingRow is a row that is read and not settled.
type pendingRow struct {
	petRow
	chain [32]byte // what was read up to here
	done  bool
	there bool
}

// run imports everything, or as much as it can.
func (i *petImport) run(ctx context.Context) error {
	done, err := i.resume()
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	work := make(chan *pendingRow)
	var workers sync.WaitGroup
	for range i.workers {
		workers.Go(func() {
			for row := range work {
				if err := i.add(ctx, row); err != nil {
					stop(err)
				}
			}
		})
	}
	readErr := i.read(ctx, done, work)
	close(work)
	workers.Wait()
	i.progress.end()
	err = readErr
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return i.finish(err)
}

// read hands the rows to the workers, but for the first ones, which are done.
func (i *petImport) read(ctx context.Context, done int64, work chan<- *pendingRow) error {
	var chain [32]byte
	for n := int64(1); ctx.Err() == nil; n++ {
		row, err := i.rows.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fileError(fmt.Errorf("%s: %w", visible(i.file), err))
		}
		chain = linked(chain, &row)
		if n <= done {
			continue
		}
		select {
		case i.room <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		p := &pendingRow{petRow: row, chain: chain}
		i.mu.Lock()
		i.pending = append(i.pending, p)
		i.mu.Unlock()
		if row.bad != nil {
			i.refuse(p, row.bad)
			continue
		}
		select {
		case work <- p:
		case <-ctx.Done():
		}
	}
	return nil
}

// add sends a row. The error ends the import.
func (i *petImport) add(ctx context.Context, row *pendingRow) error {
	var meta client.Meta
	_, err := i.CreatePet(ctx, row.pet, client.IdempotencyKey(row.name()), client.ReadMeta(&meta))
	var coded *animalstore.Error
	switch {
	case err == nil:
		i.settle(row, func() { row.there = meta.Replayed })
		return nil
	case errors.As(err, &coded) && (meta.Status == 400 || meta.Status == 413):
		i.refuse(row, errors.New(coded.Message))
		return nil
	}
	return err
}

// refuse tells of a row that cannot be added.
func (i *petImport) refuse(row *pendingRow, reason error) {
	i.settle(row, func() {
		row.bad = reason
		i.progress.end()
		fmt.Fprintf(i.notes, "line %d: %s\n", row.line, visible(reason.Error()))
	})
}

// settle notes that a row is done, and writes the journal now and then.
func (i *petImport) settle(row *pendingRow, note func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	note()
	row.done = true
	i.progress.add(1)
	for len(i.pending) > 0 && i.pending[0].done {
		first := i.pending[0]
		i.pending[0], i.pending = nil, i.pending[1:]
		<-i.room
		switch {
		case first.bad != nil:
			i.tally.Bad++
		case first.there:
			i.tally.There++
		default:
			i.tally.Added++
		}
		if i.journal != nil {
			i.journal.reached(i.tally, first.chain)
		}
	}
	if now := time.Now(); i.journal != nil && now.Sub(i.told) >= time.Second {
		i.told = now
		i.failed = i.journal.save()
	}
}

// finish tells what became of the file.
func (i *petImport) finish(err error) error {
	t := i.tally // no worker is left
	for _, row := range i.pending {
		switch { // done, though a row before them is not
		case !row.done:
		case row.bad != nil:
			t.Bad++
		case row.there:
			t.There++
		default:
			t.Added++
		}
	}
	i.note("%s.", t.words())
	if i.journal == nil {
		return i.outcome(t, err)
	}
	if err == nil {
		return errors.Join(i.outcome(t, nil), fileError(i.journal.remove()))
	}
	if saveErr := i.journal.save(); saveErr != nil || i.failed != nil {
		i.note("How far it came could not be written down: %v", errors.Join(saveErr, i.failed))
	}
	return i.outcome(t, err)
}

func (i *petImport) outcome(t tally, err error) error {
	switch {
	case err != nil:
		i.note("The import is not complete. Run the same command again within 24 hours, with the same key: it goes on, and adds nothing twice.")
		return err
	case t.Bad > 0:
		text := fmt.Sprintf("%s could not be added: mend them and import them again", countOf(t.Bad, "line", "lines"))
		return toldError{errors.New("bad lines"), text, exitError}
	}
	return nil
}

func (t tally) words() string {
	text := fmt.Sprintf("Added %s", countOf(t.Added, "pet", "pets"))
	if t.There > 0 {
		text += fmt.Sprintf("; %s had been added by an earlier run", grouped(t.There))
	}
	if t.Bad > 0 {
		text += fmt.Sprintf("; refused %s", countOf(t.Bad, "line", "lines"))
	}
	return text
}
