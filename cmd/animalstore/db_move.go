package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"animalstore/internal/cli"
	"animalstore/internal/db"
	"animalstore/internal/db/transfer"
	"animalstore/internal/server"
	"animalstore/internal/terminal"

	"github.com/spf13/cobra"
)

func dbMoveCommand() *cobra.Command {
	from, to := databaseFlag{flag: "from"}, databaseFlag{flag: "to"}
	cmd := &cobra.Command{
		Use:   "move",
		Short: "Copy a whole store into an empty database",
		Long: `Copy a whole store into an empty database, such as from a SQLite file to
PostgreSQL or back: pets, photos, orders, categories, the next ids, events,
webhooks and their deliveries, keys with their secrets, limits, bans and usage,
and idempotency records.

The move is one transaction. If it fails or is interrupted, the new database is
still empty and you can run the same command again. Before it commits, it reads
everything back and compares it. The old store is only read. Stop its server
first, and don't start it again once clients use the new database.`,
		Example: `  animalstore db move --from sqlite:animalstore.db \
      --to postgres://animalstore@db1/store
  animalstore db move --from postgres://animalstore@db1/store \
      --to sqlite:animalstore.db
  animalstore db move --from sqlite:animalstore.db --to sqlite:copy.db`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if from.url == "" || to.url == "" {
				return cli.Usagef("give the store to copy with --from and the empty database with --to, such as --from sqlite:animalstore.db --to postgres://user@host/database")
			}
			if from.url == to.url {
				return cli.Usagef("--from and --to name the same database")
			}
			if err := cmp.Or(to.check(), from.check()); err != nil {
				return err // before opening anything
			}
			return moveStore(cmd.Context(), from, to, newPrinter(cmd))
		},
	}
	cmd.Flags().StringVar(&from.url, "from", "", "the store to copy: sqlite:FILE or postgres://USER@HOST/NAME (required)")
	cmd.Flags().StringVar(&to.url, "to", "", "the empty database to copy it to: sqlite:FILE or postgres://USER@HOST/NAME (required)")
	jsonFlag(cmd)
	return cmd
}

// moveStore copies a store into an empty database, and prints the result.
func moveStore(ctx context.Context, from, to databaseFlag, p *terminal.Printer) error {
	source, err := from.openSource(ctx, true)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := server.OpenTarget(ctx, to.url)
	if err != nil {
		return to.withFlag(err)
	}
	defer target.Close()
	began := time.Now()
	show := &moveProgress{w: p.Notes}
	moved, err := transfer.Move(ctx, source, target, show)
	show.end()
	switch {
	case moved == nil:
	case p.JSON:
		err = errors.Join(err, p.PrintJSON(movedTables(moved)))
	default:
		printMoved(p.Out, moved)
	}
	if err != nil {
		return moveError(ctx, err)
	}
	total := int64(0)
	for _, m := range moved {
		total += m.Into.Rows
	}
	took := time.Since(began).Seconds()
	p.Note("Moved %s in %.1f s, %s per second: %s now has the same content as %s.",
		terminal.Count(total, "row", "rows"), took, terminal.Grouped(int64(float64(total)/max(took, 0.001))), server.RedactDatabaseURL(to.url), server.RedactDatabaseURL(from.url))
	p.Note(`Next: run "animalstore serve" with the new --database. Keep the old one for now, but don't serve it.`)
	return nil
}

// moveProgress shows a progress bar for each phase of a move.
type moveProgress struct {
	w io.Writer
	*terminal.Progress
}

func (p *moveProgress) Copying(rows int64)   { p.begin("Copying", rows) }
func (p *moveProgress) Comparing(rows int64) { p.begin("Comparing", rows) }
func (p *moveProgress) Did(rows int)         { p.Add(rows) }

func (p *moveProgress) begin(phase string, rows int64) {
	p.end()
	fmt.Fprintf(p.w, "%s %s.\n", phase, terminal.Count(rows, "row", "rows"))
	p.Progress = terminal.NewLine(p.w).Progress(rows, "rows")
}

func (p *moveProgress) end() {
	if p.Progress != nil {
		p.Clear()
	}
}

// movedTable is a table that was moved, as JSON.
type movedTable struct {
	Table  string `json:"table"`
	Rows   int64  `json:"rows"`
	SHA256 string `json:"sha256"`
}

func movedTables(moved []transfer.Moved) []movedTable {
	tables := make([]movedTable, len(moved))
	for i, m := range moved {
		tables[i] = movedTable{m.Table.Holds, m.Into.Rows, fmt.Sprintf("%x", m.Into.Sum)}
	}
	return tables
}

// printMoved prints a line for each table, or a line for each side if they differ.
func printMoved(w io.Writer, moved []transfer.Moved) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "WHAT\tROWS\tNEXT ID\tSHA-256")
	line := func(what string, serial bool, c transfer.Contents) {
		next := "-"
		if serial {
			next = fmt.Sprint(uint64(c.LastID) + 1)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%x\n", what, terminal.Grouped(c.Rows), next, c.Sum[:8])
	}
	for _, m := range moved {
		if m.From == m.Into {
			line(m.Table.Holds, m.Table.Serial, m.Into)
			continue
		}
		line(m.Table.Holds+" of the source", m.Table.Serial, m.From)
		line(m.Table.Holds+" of the target", m.Table.Serial, m.Into)
	}
	table.Flush() // it fails only if w does
}

// moveError says why a move failed, what the databases contain now, and what to do.
func moveError(ctx context.Context, err error) error {
	const unchanged = "Nothing was moved. "
	var taken *transfer.NotEmptyError
	switch {
	case errors.Is(err, db.ErrOutcomeUnknown):
		return fmt.Errorf("the connection was lost during the commit: everything was moved, or nothing. Retry: a finished move is refused (%w)", err)
	case errors.As(err, &taken):
		return fmt.Errorf("%w. Choose an empty database with --to", err)
	case errors.Is(err, transfer.ErrDiffers):
		return fmt.Errorf("%w, see the table. %sPlease report this", err, unchanged)
	case ctx.Err() != nil:
		return errors.New("stopped. " + unchanged + "Retry")
	case errors.Is(err, db.ErrFull):
		return fmt.Errorf("the target's disk is full. %sFree some space and retry (%w)", unchanged, err)
	case errors.Is(err, db.ErrUnavailable):
		return fmt.Errorf("the database stopped responding. %sRetry when it is back (%w)", unchanged, err)
	}
	return fmt.Errorf("%w. %sFix this and retry", err, unchanged)
}
