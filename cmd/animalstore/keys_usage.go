package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"animalstore"
	"animalstore/internal/db"

	"github.com/spf13/cobra"
)

func keysUsageCommand(database *string) *cobra.Command {
	var hours int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "usage ID",
		Short: "Show how a key was used, hour by hour",
		Example: `  animalstore keys usage 2
  animalstore keys usage 2 --hours 168`,
		Args: oneKeyID,
		RunE: func(cmd *cobra.Command, args []string) error {
			most := int(animalstore.UsageKept / time.Hour)
			if hours < 1 || hours > most {
				return usageError{fmt.Errorf("--hours must be from 1 to %d", most)}
			}
			return withKeyID(cmd, *database, args[0], func(store db.DB, id int64) error {
				key, err := store.Key(cmd.Context(), id)
				if err != nil {
					return err
				}
				since := time.Now().Truncate(time.Hour).Add(-time.Duration(hours-1) * time.Hour)
				usage, err := store.Usage(cmd.Context(), id, animalstore.At(since))
				if err != nil {
					return err
				}
				if asJSON {
					return writeIndented(cmd.OutOrStdout(), usage)
				}
				return writeUsage(cmd.OutOrStdout(), key, usage, hours)
			})
		},
	}
	cmd.Flags().IntVar(&hours, "hours", 24, "how many hours to look back")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// writeUsage prints a row for each hour with requests, oldest first, with a bar
// to compare them by.
func writeUsage(w io.Writer, key animalstore.Key, usage []animalstore.Usage, hours int) error {
	var admitted, refused, most int64
	for _, u := range usage {
		admitted += u.Admitted
		refused += u.Refused
		most = max(most, u.Admitted+u.Refused)
	}
	fmt.Fprintf(w, "Key %d (%s) in the last %d hours: %d admitted, %d refused.\n", key.ID, key.Name, hours, admitted, refused)
	if len(usage) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "HOUR (UTC)\tADMITTED\tREFUSED\t")
	for i := range usage {
		u := usage[len(usage)-1-i]
		fmt.Fprintf(tw, "%s\t%d\t%d\t%s\n", u.Hour.Format("2006-01-02 15:04"), u.Admitted, u.Refused, bar(u.Admitted, u.Refused, most))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, "\n█ admitted  ░ refused")
	return err
}

const barWidth = 40

// bar draws an hour against the busiest one. What is not nothing shows.
func bar(admitted, refused, most int64) string {
	length := func(n int64) int {
		if n == 0 {
			return 0
		}
		return max(1, int(n*barWidth/most))
	}
	return strings.Repeat("█", length(admitted)) + strings.Repeat("░", length(refused))
}
