package main

import (
	"animalstore/internal/commandline"
	"animalstore/internal/dbadmin"

	"github.com/spf13/cobra"
)

func dbBackupCommand() *cobra.Command {
	var database databaseFlag
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Copy a store into a new file",
		Long: `Copy a store into a new file, while a server is running or not. The copy is the
whole store at one instant. It is one file that only its owner can read.

FILE appears only when the copy is complete, on disk, and has passed the same
checks as "db check". An existing file is never replaced. Until then the copy is
called FILE.partial; if the command is killed, the next one removes that.`,
		Example: `  animalstore db backup tuesday.db
  animalstore db backup /var/lib/animalstore/tuesday.db --database sqlite:animalstore.db`,
		Args: commandline.OneFile("name the new file for the copy, such as: animalstore db backup monday.db"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := database.check(); err != nil {
				return err
			}
			return dbadmin.Backup(cmd.Context(), database.url, args[0], newPrinter(cmd))
		},
		ValidArgsFunction: completeFiles,
	}
	database.register(cmd.Flags())
	jsonFlag(cmd)
	return cmd
}
