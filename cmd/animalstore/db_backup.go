package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"time"

	"animalstore"
	"animalstore/internal/cli"
	"animalstore/internal/db"
	"animalstore/internal/db/postgres"
	"animalstore/internal/db/sqlite"
	"animalstore/internal/db/transfer"
	"animalstore/internal/db/transfer/s3"
	"animalstore/internal/terminal"

	"github.com/spf13/cobra"
)

func dbBackupCommand() *cobra.Command {
	return copyCommand(&cobra.Command{
		Use:   "backup FILE|s3://BUCKET/PREFIX",
		Short: "Copy a store into a new file or a bucket",
		Long: `Copy a store into a new file, whether or not a server is running. The copy is
the whole store at one instant. It is one file that only its owner can read.

FILE appears only when the copy is complete, on disk, and has passed the same
checks as "db check". Until then it is called FILE.partial; if the command is
killed, the next one removes that. An existing file is never replaced.

For a bucket, the copy is first made next to the store. Its name there
consists of the store's file name, its id and the time.

` + bucketHelp,
		Example: `  animalstore db backup tuesday.db
  animalstore db backup /var/lib/animalstore/tuesday.db \
      --database sqlite:animalstore.db
  animalstore db backup s3://acme-backups/shop`,
		Args: cli.OneFile("give a new file for the copy, such as: animalstore db backup monday.db"),
	}, backUpStore)
}

// copyCommand makes cmd call run with the file in its argument and a database.
func copyCommand(cmd *cobra.Command, run func(ctx context.Context, file, database string, p *terminal.Printer) error) *cobra.Command {
	var database databaseFlag
	cmd.ValidArgsFunction = cli.CompleteFiles
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := database.check(); err != nil {
			return err
		}
		return run(cmd.Context(), args[0], database.url, newPrinter(cmd))
	}
	database.register(cmd.Flags())
	jsonFlag(cmd)
	return cmd
}

// backUpStore copies the database into a new file or a bucket, and prints the result.
func backUpStore(ctx context.Context, file, database string, p *terminal.Printer) error {
	if postgres.Is(database) {
		return postgresTools("Back up a store in PostgreSQL with its own tools:",
			"pg_dump --format=custom --file="+shellQuote(dumpFile(file))+" --dbname="+shellQuote(postgres.ForTools(database)))
	}
	store := fileOf(database)
	began, line := time.Now(), terminal.NewLine(p.Notes)
	var copied copyResult
	var err error
	if s3.Is(file) {
		copied, err = backUpToBucket(ctx, store, file, began, line, p)
	} else {
		var c transfer.Copied
		c, err = transfer.Backup(ctx, sqlite.Files{}, store, file, &copyProgress{line: line})
		copied = copyResult{File: file, Bytes: c.Size, Checks: c.Checks}
	}
	line.Show("")
	switch {
	case err != nil:
		return copyError(ctx, err, "No backup was made, and the store is unchanged.")
	case p.JSON:
		return p.PrintJSON(copied)
	}
	p.Note("Backed up %s to %s in %.1f s: %s, one instant, %s passed.", store, copied.File, time.Since(began).Seconds(),
		megabytes(copied.Bytes), terminal.Count(int64(copied.Checks), "check", "checks"))
	return nil
}

// copyResult is what backup and restore print as JSON.
type copyResult struct {
	File   string `json:"file"`
	Bytes  int64  `json:"bytes"`
	Checks int    `json:"checks"`

	// Only of restore.
	Backup         string           `json:"backup,omitempty"` // which one was restored
	MadeAt         animalstore.Time `json:"madeAt,omitzero"`  // if its name says it
	PausedWebhooks *int             `json:"pausedWebhooks,omitempty"`
}

// fileOf is the path of a SQLite database.
func fileOf(url string) string { return strings.TrimPrefix(url, "sqlite:") }

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

// postgresTools is the error of a command for SQLite only. It shows PostgreSQL's own.
func postgresTools(why, command string) error {
	return errors.New(why + "\n\n  " + command + "\n\nThe password is left out: put it in ~/.pgpass, or in PGPASSWORD")
}

// dumpFile is the file to show in a command of PostgreSQL's, which knows no buckets.
func dumpFile(file string) string {
	if s3.Is(file) {
		return "store.dump"
	}
	return file
}

// shellQuote quotes an argument for a shell. On Windows, cmd.exe takes ' literally.
func shellQuote(s string) string {
	if runtime.GOOS == "windows" {
		return `"` + s + `"`
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// plainWord matches what shells take as it is. Backslashes are only plain on Windows.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:@%+,-]+$`)

// shellWord quotes an argument for a shell if it has to be.
func shellWord(s string) string {
	if plainWord.MatchString(s) || runtime.GOOS == "windows" && plainWord.MatchString(strings.ReplaceAll(s, `\`, "/")) {
		return s
	}
	return shellQuote(s)
}

// copyError says why a backup or restore failed, what exists now, and what to do.
func copyError(ctx context.Context, err error, result string) error {
	err = databaseFlag{flag: "database"}.withFlag(err)
	switch {
	case ctx.Err() != nil:
		return errors.New("stopped. " + result)
	case errors.Is(err, transfer.ErrExists):
		return fmt.Errorf("%w: choose a new file. %s", err, result)
	case errors.Is(err, db.ErrFull):
		return fmt.Errorf("the disk is full. %s Free some space and retry (%w)", result, err)
	case errors.Is(err, transfer.ErrDamaged):
		return fmt.Errorf(`%w. %s Run "animalstore db check" on the file that was copied`, err, result)
	}
	return fmt.Errorf("%w. %s", err, result)
}

// copyProgress shows how a copy grows, and then which check is running.
type copyProgress struct {
	line   *terminal.Line
	copied func(bytes int64)
}

func (p *copyProgress) Copied(bytes, total int64) {
	if p.copied == nil {
		p.copied = showBytes(p.line, total)
	}
	p.copied(bytes)
}

// showBytes returns a function that shows how many of the bytes are copied.
func showBytes(line *terminal.Line, total int64) func(copied int64) {
	bar := line.Progress(total>>10, "KiB")
	return func(copied int64) { bar.Add(int(copied>>10 - bar.Done())) }
}

func (p *copyProgress) Checking(rule string)     { p.line.Show("checking the copy: " + rule) }
func (p *copyProgress) Checked(transfer.Finding) {}

func dbRestoreCommand() *cobra.Command {
	return copyCommand(&cobra.Command{
		Use:   "restore FILE|DIRECTORY|s3://BUCKET/PREFIX[/NAME]",
		Short: "Restore a store from a backup",
		Long: `Copy a backup to where --database says, and check it. Nothing is ever replaced:
stop the server and move the old database out of the way first. The database
appears only when the copy is complete, on disk, and has passed the checks of
"db check". The backup itself is only read.

Webhooks are paused, because they would send again what was delivered after the
backup.

Given a directory or bucket, it restores the newest backup, if all are of one
store. One dated in the future counts as the oldest. The download needs as
much space as the store, until the end.

` + bucketHelp,
		Example: `  animalstore db restore monday.db --database sqlite:restored.db
  animalstore db restore monday.db \
      --database sqlite:/var/lib/animalstore/store.db
  animalstore db restore s3://acme-backups/shop`,
		Args: cli.OneFile("give the backup, such as: animalstore db restore monday.db"),
	}, restoreStore)
}

// restoreStore makes a backup the database, which must not exist, and prints the result.
func restoreStore(ctx context.Context, file, database string, p *terminal.Printer) error {
	if postgres.Is(database) {
		return postgresTools("Restore a store in PostgreSQL with its own tools, into an empty database:",
			"pg_restore --single-transaction --exit-on-error --no-owner --dbname="+shellQuote(postgres.ForTools(database))+" "+shellQuote(dumpFile(file)))
	}
	store := fileOf(database)
	began, line := time.Now(), terminal.NewLine(p.Notes)
	backup, err := findBackup(ctx, file, began)
	if err != nil {
		return restoreError(ctx, err)
	}
	noteAhead(p, backup.ahead)
	var paused int
	restoration := transfer.Restoration{Backup: backup.address, Store: store, Prepare: func(path string) (err error) {
		paused, err = prepareRestored(ctx, path)
		return err
	}}
	if backup.bucket != nil {
		restoration.From = &transfer.Download{Place: backup.bucket, File: backup.File,
			Progress: showBytes(line, backup.Size),
			Restarted: func() {
				fmt.Fprintln(line.Above(p.Notes), "The download started over: the service can't resume it, or the file was replaced.")
			}}
	}
	copied, err := transfer.Restore(ctx, sqlite.Files{}, restoration, &copyProgress{line: line})
	line.Show("")
	if err != nil {
		return restoreError(ctx, err)
	}
	if p.JSON {
		return p.PrintJSON(copyResult{store, copied.Size, copied.Checks, backup.address, animalstore.At(backup.At), &paused})
	}
	p.Note("Restored %s to %s in %.1f s: %s, %s passed.", backup, store, time.Since(began).Seconds(),
		megabytes(copied.Size), terminal.Count(int64(copied.Checks), "check", "checks"))
	if !copied.Sealed {
		p.Note("The backup has no checksum, because another tool made it: only damage that the checks detect is ruled out.")
	}
	if paused > 0 {
		p.Note("Paused %s, which would resend events delivered after the backup. Resume each once its receiver is ready.",
			terminal.Count(int64(paused), "webhook", "webhooks"))
	}
	p.Note(`Next: run "animalstore serve" with the same --database.`)
	return nil
}

// prepareRestored pauses the webhooks of a store that is being restored, because they would
// send events again that were delivered after the backup. It also gives the store a new id,
// so that its backups don't replace the old store's.
func prepareRestored(ctx context.Context, path string) (paused int, err error) {
	d, err := sqlite.Open(ctx, path, sqlite.Options{MustExist: true})
	if err != nil {
		return 0, fmt.Errorf("pause webhooks: %w", err)
	}
	if paused, err = d.PauseWebhooks(ctx); err != nil {
		err = fmt.Errorf("pause webhooks: %w", err)
	}
	id, _, idErr := d.BackupID(ctx)
	_, renewErr := d.RenewID(ctx, id)
	return paused, errors.Join(err, idErr, renewErr, d.Close())
}

// restoreError also says how to move away the files that a restore would replace.
func restoreError(ctx context.Context, err error) error {
	const unchanged = "Nothing was restored."
	var occupied *transfer.OccupiedError
	if !errors.As(err, &occupied) {
		return copyError(ctx, err, unchanged)
	}
	quoted := make([]string, len(occupied.Files))
	for i, name := range occupied.Files {
		quoted[i] = shellQuote(name)
	}
	return fmt.Errorf("%w. %s Move the old database away first:\n\n  mkdir old-store && mv %s old-store/", err, unchanged, strings.Join(quoted, " "))
}
