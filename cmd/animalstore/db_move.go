package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"animalstore/internal/db"

	"github.com/spf13/cobra"
)

func dbMoveCommand() *cobra.Command {
	from, to := databaseFlag{flag: "from"}, databaseFlag{flag: "to"}
	cmd := &cobra.Command{
		Use:   "move",
		Short: "Copy a whole store into an empty database",
		Long: `Copy a whole store into an empty database, such as from a SQLite file to
PostgreSQL or back: pets, orders, categories, the ids that come next, keys
with their secrets, limits, bans and usage, and the records of retried writes.

It is one transaction. Whatever ends it early, the new database is as empty as
before, and the same command can be run again. Before the end everything is read
back and compared. The store that is copied is only read. Stop its server first,
and do not start it again once clients use the new database.`,
		Example: `  animalstore db move --from sqlite:animalstore.db --to postgres://animalstore@db1/store
  animalstore db move --from postgres://animalstore@db1/store --to sqlite:animalstore.db
  animalstore db move --from sqlite:animalstore.db --to sqlite:copy.db`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if from.url == "" || to.url == "" {
				return usageError{errors.New("say what to copy and where to, with --from and --to, such as --from sqlite:animalstore.db --to postgres://user@host/database")}
			}
			if from.url == to.url {
				return usageError{errors.New("--from and --to name the same database")}
			}
			return move(cmd.Context(), from, to, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&from.url, "from", "", "the store to copy: sqlite:FILE or postgres://USER@HOST/NAME (required)")
	cmd.Flags().StringVar(&to.url, "to", "", "the empty database to copy it to: sqlite:FILE or postgres://USER@HOST/NAME (required)")
	return cmd
}

// move copies one database into the other and tells of it.
func move(ctx context.Context, from, to databaseFlag, stdout, stderr io.Writer) error {
	if _, err := to.file(); err != nil {
		return err // before anything is opened
	}
	source, err := from.openSource(ctx, true)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := to.openTarget(ctx)
	if err != nil {
		return err
	}
	defer target.Close()
	began := time.Now()
	show := &moveProgress{w: stderr}
	moved, err := db.Move(ctx, source, target, show)
	show.end()
	if moved != nil {
		printMoved(stdout, moved)
	}
	if err != nil {
		return notMoved(ctx, err)
	}
	total := int64(0)
	for _, m := range moved {
		total += m.Into.Rows
	}
	took := time.Since(began).Seconds()
	fmt.Fprintf(stderr, `Moved %s in %.1f s, %s a second, and compared them: %s holds what %s does.
Next: "animalstore serve --database …" with the database of --to. Keep the old one as
it is until you trust the new one, and start no server on it.
`, countOf(total, "row", "rows"), took, grouped(int64(float64(total)/max(took, 0.001))), to.shown(), from.shown())
	return nil
}

// moveProgress shows a bar for each part of the work.
type moveProgress struct {
	w io.Writer
	*progress
}

func (p *moveProgress) Copying(rows int64)   { p.begin("Copying", rows) }
func (p *moveProgress) Comparing(rows int64) { p.begin("Comparing", rows) }
func (p *moveProgress) Did(rows int)         { p.add(rows) }

func (p *moveProgress) begin(part string, rows int64) {
	p.end()
	fmt.Fprintf(p.w, "%s %s.\n", part, countOf(rows, "row", "rows"))
	p.progress = newProgress(p.w, rows, "rows")
}

func (p *moveProgress) end() {
	if p.progress != nil {
		p.progress.end()
	}
}

// printMoved prints a line for each table, or one for each side where they differ.
func printMoved(w io.Writer, moved []db.Moved) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "WHAT\tROWS\tNEXT ID\tSHA-256")
	line := func(what string, serial bool, c db.Contents) {
		next := "-"
		if serial {
			next = fmt.Sprint(uint64(c.LastID) + 1)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%x\n", what, grouped(c.Rows), next, c.Sum[:8])
	}
	for _, m := range moved {
		if m.From == m.Into {
			line(m.Table.Holds, m.Table.Serial, m.Into)
			continue
		}
		line(m.Table.Holds+" of the source", m.Table.Serial, m.From)
		line(m.Table.Holds+" of the target", m.Table.Serial, m.Into)
	}
	table.Flush() // the buffer only fails as w does
}

// notMoved says why, what there is now, and how to go on.
func notMoved(ctx context.Context, err error) error {
	const again = "Nothing was moved: the target is as it was, and so is the source. "
	var taken *db.NotEmptyError
	switch {
	case errors.Is(err, db.ErrOutcomeUnknown):
		return fmt.Errorf("the connection was lost at the very end, so that all was moved or nothing. Run the same command again: it refuses if all was moved (%w)", err)
	case errors.As(err, &taken):
		return fmt.Errorf("%w. Name an empty database with --to", err)
	case errors.Is(err, db.ErrDiffers):
		return fmt.Errorf("%w, see the table. %sPlease report this", err, again)
	case ctx.Err() != nil:
		return errors.New("stopped. " + again + "Run the same command again to start over")
	case errors.Is(err, db.ErrFull):
		return fmt.Errorf("the disk of the target is full. %sMake room and run the same command again (%w)", again, err)
	case errors.Is(err, db.ErrUnavailable):
		return fmt.Errorf("the database did not answer any more. %sRun the same command again when it does (%w)", again, err)
	}
	return fmt.Errorf("%w. %sRun the same command again once that is mended", err, again)
}
