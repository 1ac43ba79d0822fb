package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"animalstore/internal/cli"
	"animalstore/internal/db"
	"animalstore/internal/db/sqlite"
	"animalstore/internal/db/transfer"
	"animalstore/internal/server"
	"animalstore/internal/terminal"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func dbCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "db",
		Short: "Back up, restore, move, check and update a database",
		Long:  "Back up, restore, move, check and update the database of a store.",
		Example: `  animalstore db backup tuesday.db --database sqlite:animalstore.db
  animalstore db check --database sqlite:animalstore.db
  animalstore db move --from sqlite:animalstore.db --to postgres://db1/store`,
	}
	return cli.Group(cmd, dbBackupCommand(), dbBackupsCommand(), dbRestoreCommand(), dbMoveCommand(), dbCheckCommand(), dbMigrateCommand())
}

// databaseFlag is a flag that names a database, and its value.
type databaseFlag struct{ flag, url string }

// register adds --database, the flag of the commands that use one database.
func (d *databaseFlag) register(flags *pflag.FlagSet) {
	d.flag = "database"
	flags.StringVar(&d.url, d.flag, "sqlite:animalstore.db", databaseUsage)
}

const databaseUsage = "the store's database: sqlite:FILE or postgres://USER@HOST/NAME"

// check refuses a value that isn't a valid URL.
func (d databaseFlag) check() error {
	if err := server.CheckDatabaseURL("--"+d.flag, d.url); err != nil {
		return cli.Usagef("%w", err)
	}
	return nil
}

// stopAfter ends a command after a failed write or damage: nothing it says could be
// trusted.
func stopAfter(err error) {
	fmt.Fprintln(os.Stderr, "animalstore: storage failed:", err)
	os.Exit(exitError)
}

// open opens the database as a server does.
func (d databaseFlag) open(ctx context.Context, opts sqlite.Options) (db.DB, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	opts.Fatal = stopAfter
	store, err := server.OpenDatabase(ctx, d.url, opts)
	return store, d.withFlag(err)
}

// openSource opens a snapshot of the database. If alone is set, it refuses one that
// a server is using.
func (d databaseFlag) openSource(ctx context.Context, alone bool) (db.Source, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	source, err := server.OpenSource(ctx, d.url, alone)
	return source, d.withFlag(err)
}

// withFlag adds to the error of opening a database how to choose another one.
func (d databaseFlag) withFlag(err error) error {
	var failed *db.OpenError
	if !errors.As(err, &failed) {
		return err
	}
	switch failed.Reason {
	case db.Absent:
		return fmt.Errorf("%w: choose the server's database with --%s", err, d.flag)
	case db.Served:
		return fmt.Errorf("%w. Stop it first, or choose another file with --%s", err, d.flag)
	case db.Unreachable:
		return fmt.Errorf("%w. Check that it is running, and the host and port of --%s", err, d.flag)
	}
	return fmt.Errorf("%w. Choose another file with --%s", err, d.flag)
}

func dbMigrateCommand() *cobra.Command {
	var database databaseFlag
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Create or update a database's tables",
		Long: `Create a database's tables, or update them to this version. A server does the
same when it starts. Use this to do it in advance, or as a user with more
rights.`,
		Example: `  animalstore db migrate --database sqlite:/var/lib/animalstore/store.db
  animalstore db migrate --database postgres://owner@db1/store`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := database.check(); err != nil {
				return err
			}
			return database.migrate(cmd.Context(), newPrinter(cmd))
		},
	}
	database.register(cmd.Flags())
	jsonFlag(cmd)
	return cmd
}

// migrate creates or updates the tables of a database by opening it as a server would,
// and prints their versions. If they are up to date it opens nothing: a server may be
// running.
func (d databaseFlag) migrate(ctx context.Context, p *terminal.Printer) error {
	from, to, err := server.DatabaseVersions(ctx, d.url)
	if err != nil {
		return d.withFlag(err)
	}
	text := fmt.Sprintf("The tables are up to date: version %d.", to)
	if from != to {
		store, err := d.open(ctx, sqlite.Options{Serve: true})
		if err != nil {
			return err
		}
		if err := store.Close(); err != nil {
			return err
		}
		text = fmt.Sprintf("The tables were updated from version %d to version %d.", from, to)
	}
	if p.JSON {
		return p.PrintJSON(struct {
			From int64 `json:"from"`
			To   int64 `json:"to"`
		}{from, to})
	}
	_, err = fmt.Fprintln(p.Out, text)
	return err
}

func dbCheckCommand() *cobra.Command {
	var database databaseFlag
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check that a store is consistent",
		Long: `Check that a store is consistent: that its file is intact, that pets, photos,
orders, categories and keys agree with each other, that photos have all their
bytes, and that no event is missing. It also counts them. It only reads, so it
works while a server is running on the same database. It exits with 1 if
anything is wrong.`,
		Example: `  animalstore db check
  animalstore db check --database postgres://animalstore@db1/store`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			source, err := database.openSource(cmd.Context(), false)
			if err != nil {
				return err
			}
			defer source.Close()
			return checkStore(cmd.Context(), source, newPrinter(cmd))
		},
	}
	database.register(cmd.Flags())
	jsonFlag(cmd)
	return cmd
}

// checkResult is what --json prints.
type checkResult struct {
	Checks   int            `json:"checks"`
	Failed   int            `json:"failed"`
	Findings []checkFinding `json:"findings"`

	Counts transfer.Counts `json:"counts"`
}

type checkFinding struct {
	Rule    string `json:"rule"`
	OK      bool   `json:"ok"`
	Problem string `json:"problem,omitempty"`
}

// checkStore runs every check and prints a line for each, or all of them as JSON.
func checkStore(ctx context.Context, source db.Source, p *terminal.Printer) error {
	show := &checkProgress{p: p, line: terminal.NewLine(p.Notes)}
	ran, failed, err := transfer.Check(ctx, source, show)
	show.line.Show("")
	counts, countErr := transfer.Count(ctx, source)
	if failed == 0 { // counting may fail in a damaged store
		err = cmp.Or(err, countErr)
	}
	if p.JSON && err == nil {
		err = p.PrintJSON(checkResult{ran, failed, show.findings, counts})
	}
	switch {
	case ctx.Err() != nil:
		return errors.New("stopped")
	case err != nil:
		return fmt.Errorf("the database did not respond: %w", err)
	case failed > 0:
		return fmt.Errorf("%d of %d checks failed. Keep a copy of the database as it is, and restore an earlier backup if you have one", failed, ran)
	}
	p.Note("All %d checks passed.", ran)
	photos := terminal.Count(counts.Photos, "photo", "photos")
	if counts.Photos > 0 {
		photos += " (" + megabytes(counts.PhotoBytes) + ")"
	}
	p.Note("The store has %s, %s, %s, %s and %s.", terminal.Count(counts.Pets, "pet", "pets"), photos, terminal.Count(counts.Orders, "order", "orders"),
		terminal.Count(counts.Categories, "category", "categories"), terminal.Count(counts.Keys, "key", "keys"))
	return nil
}

// checkProgress prints what each check found, and shows which one is running.
type checkProgress struct {
	p        *terminal.Printer
	line     *terminal.Line
	findings []checkFinding
}

func (p *checkProgress) Checking(rule string) { p.line.Show("checking: " + rule) }

func (p *checkProgress) Checked(f transfer.Finding) {
	p.line.Show("")
	finding, line := checkFinding{Rule: f.Rule}, ""
	switch {
	case f.Err != nil: // a file can be too damaged to read
		finding.Problem = f.Err.Error()
		line = fmt.Sprintf("WRONG  %s: %v", f.Rule, f.Err)
	case f.OK():
		finding.OK = true
		line = "ok     " + f.Rule
	default:
		finding.Problem = examplesOf(f)
		line = fmt.Sprintf("WRONG  %s, but %s", f.Rule, finding.Problem)
	}
	p.findings = append(p.findings, finding)
	if !p.p.JSON {
		fmt.Fprintln(p.p.Out, line)
	}
}

func examplesOf(f transfer.Finding) string {
	text := strings.ReplaceAll(strings.Join(f.Examples, "; "), "\n", ", ")
	if rest := f.Violations - int64(len(f.Examples)); rest > 0 {
		text += fmt.Sprintf("; and %s more", terminal.Grouped(rest))
	}
	return text
}
