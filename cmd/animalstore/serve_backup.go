package main

import (
	"errors"
	"fmt"
	"time"

	"animalstore/internal/db/postgres"
	"animalstore/internal/terminal"

	"github.com/spf13/cobra"
)

func registerBackupFlags(cmd *cobra.Command, f *serveFlags) {
	flags := cmd.Flags()
	flags.StringVar(&f.Backups.Dir, "backup-dir", "", "directory to back up a SQLite database to, regularly")
	flags.StringVar(&f.backupEvery, "backup-every", "24h", "how often to back up, such as 1d, 12h or 30m")
	flags.IntVar(&f.Backups.Keep, "backup-keep", 7, "how many backups to keep; older ones are deleted")
	completeFlag(cmd, "backup-dir", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveFilterDirs
	})
}

// checkBackups refuses flags that no backup can be made with.
func (f serveFlags) checkBackups() error {
	every, err := terminal.ParseDuration(f.backupEvery)
	switch {
	case err != nil || every < time.Second:
		return fmt.Errorf("--backup-every must be a duration of at least 1s, such as 1d, 12h or 30m, not %q", f.backupEvery)
	case f.Backups.Keep < 1:
		return errors.New("--backup-keep must be at least 1")
	case f.Backups.Dir != "" && postgres.Is(f.Database):
		return errors.New("--backup-dir is for SQLite: back up PostgreSQL with its own tools, see \"animalstore db backup --help\"")
	}
	return nil
}
