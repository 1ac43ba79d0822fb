package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

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

A backup from an older version can be restored too: the server updates it when
it starts.`,
		Example: `  animalstore db restore monday.db --database sqlite:restored.db
  animalstore db restore monday.db --database sqlite:/var/lib/animalstore/store.db`,
		Args: namedFile("name the backup, such as: animalstore db restore monday.db"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return restoreStore(cmd.Context(), database, args[0], newPrinter(cmd))
		},
		ValidArgsFunction: completeFiles,
	}
	database.register(cmd.Flags())
	jsonFlag(cmd)
	return cmd
}

func restoreStore(ctx context.Context, database databaseFlag, file string, p *terminal.Printer) error {
	if err := database.check(); err != nil {
		return err
	}
	if postgres.Is(database.url) {
		return postgresTools("Restore a store in PostgreSQL with its own tools, into an empty database:",
			"pg_restore --single-transaction --exit-on-error --no-owner --dbname="+shellQuote(postgres.ForTools(database.url))+" "+shellQuote(file))
	}
	if _, err := os.Stat(file); err != nil {
		return fmt.Errorf("the backup cannot be read: %w", err)
	}
	const unchanged = "Nothing was restored."
	began, show := time.Now(), &copyProgress{w: p.Notes}
	copied, err := transfer.Restore(ctx, sqlite.Files{}, file, database.file(), show)
	show.end()
	var occupied *transfer.OccupiedError
	switch {
	case errors.As(err, &occupied):
		quoted := make([]string, len(occupied.Files))
		for i, name := range occupied.Files {
			quoted[i] = shellQuote(name)
		}
		text := fmt.Sprintf("%v. %s Move the old database out of the way first:\n\n  mkdir old-store && mv %s old-store/", err, unchanged, strings.Join(quoted, " "))
		return cliError{err, text, exitError}
	case err != nil:
		return explainFailedCopy(ctx, err, unchanged)
	}
	if p.JSON {
		return p.PrintJSON(newCopyResult(database.file(), copied))
	}
	terminal.Note(p.Notes, "Restored %s to %s in %.1f s: %s, %s passed.", file, database.file(), time.Since(began).Seconds(),
		megabytes(copied.Size), terminal.Count(int64(copied.Checks), "check", "checks"))
	if !copied.Current {
		terminal.Note(p.Notes, "The backup is from an older version: the server updates its tables when it starts.")
	}
	terminal.Note(p.Notes, `Next: run "animalstore serve" with the same --database.`)
	return nil
}
