package main

import (
	"animalstore/internal/commandline"
	"animalstore/internal/dbadmin"

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

A backup from an older version can be restored too: the restored database has
the tables of this version. Webhooks are paused, because they would send again
what was delivered after the backup.`,
		Example: `  animalstore db restore monday.db --database sqlite:restored.db
  animalstore db restore monday.db --database sqlite:/var/lib/animalstore/store.db`,
		Args: commandline.OneFile("name the backup, such as: animalstore db restore monday.db"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := database.check(); err != nil {
				return err
			}
			return dbadmin.Restore(cmd.Context(), args[0], database.url, newPrinter(cmd))
		},
		ValidArgsFunction: completeFiles,
	}
	database.register(cmd.Flags())
	jsonFlag(cmd)
	return cmd
}
