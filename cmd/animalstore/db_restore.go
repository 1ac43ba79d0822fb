package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"animalstore/internal/cli"
	"animalstore/internal/db/postgres"
	"animalstore/internal/db/sqlite"
	"animalstore/internal/db/transfer"
	"animalstore/internal/terminal"

	"github.com/spf13/cobra"
)

func dbRestoreCommand() *cobra.Command {
	var database databaseFlag
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Make a backup the database of a store",
		Long: `Copy a backup to where --database says, and check it. Nothing is ever replaced:
stop the server and move the old database out of the way first. The database
appears only when the copy is complete, on disk, and has passed the checks of
"db check". The backup itself is only read.

Webhooks are paused, because they would send again what was delivered after the
backup.`,
		Example: `  animalstore db restore monday.db --database sqlite:restored.db
  animalstore db restore monday.db --database sqlite:/var/lib/animalstore/store.db`,
		Args: cli.OneFile("name the backup, such as: animalstore db restore monday.db"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := database.check(); err != nil {
				return err
			}
			return restoreStore(cmd.Context(), args[0], database.url, newPrinter(cmd))
		},
		ValidArgsFunction: cli.CompleteFiles,
	}
	database.register(cmd.Flags())
	jsonFlag(cmd)
	return cmd
}

// restoreStore makes a backup the database, which must not exist, and prints the result.
func restoreStore(ctx context.Context, file, database string, p *terminal.Printer) error {
	if postgres.Is(database) {
		return postgresTools("Restore a store in PostgreSQL with its own tools, into an empty database:",
			"pg_restore --single-transaction --exit-on-error --no-owner --dbname="+shellQuote(postgres.ForTools(database))+" "+shellQuote(file))
	}
	if _, err := os.Stat(file); err != nil {
		return fmt.Errorf("the backup cannot be read: %w", err)
	}
	store := fileOf(database)
	began, show := time.Now(), &copyProgress{w: p.Notes}
	var paused int
	pause := func(path string) (err error) {
		paused, err = pauseWebhooks(ctx, path)
		return err
	}
	copied, err := transfer.Restore(ctx, sqlite.Files{}, file, store, pause, show)
	show.end()
	if err != nil {
		return explainFailedRestore(ctx, err)
	}
	if p.JSON {
		result := newCopyResult(store, copied)
		result.PausedWebhooks = &paused
		return p.PrintJSON(result)
	}
	p.Note("Restored %s to %s in %.1f s: %s, %s passed.", file, store, time.Since(began).Seconds(),
		megabytes(copied.Size), terminal.Count(int64(copied.Checks), "check", "checks"))
	if paused > 0 {
		p.Note("Paused %s, because they would send events again that were delivered after the backup: resume each when its receiver is ready for that.",
			terminal.Count(int64(paused), "webhook", "webhooks"))
	}
	p.Note(`Next: run "animalstore serve" with the same --database.`)
	return nil
}

// pauseWebhooks pauses the webhooks of a store that is being restored, because they would
// send events again that were delivered after the backup.
func pauseWebhooks(ctx context.Context, path string) (paused int, err error) {
	d, err := sqlite.Open(ctx, path, sqlite.Options{MustExist: true})
	if err != nil {
		return 0, fmt.Errorf("pause webhooks: %w", err)
	}
	if paused, err = d.PauseWebhooks(ctx); err != nil {
		err = fmt.Errorf("pause webhooks: %w", err)
	}
	return paused, errors.Join(err, d.Close())
}

// explainFailedRestore also says how to move away the files that a restore would replace.
func explainFailedRestore(ctx context.Context, err error) error {
	const unchanged = "Nothing was restored."
	var occupied *transfer.OccupiedError
	if !errors.As(err, &occupied) {
		return explainFailedCopy(ctx, err, unchanged)
	}
	quoted := make([]string, len(occupied.Files))
	for i, name := range occupied.Files {
		quoted[i] = shellQuote(name)
	}
	return fmt.Errorf("%w. %s Move the old database out of the way first:\n\n  mkdir old-store && mv %s old-store/", err, unchanged, strings.Join(quoted, " "))
}
