package main

import (
	"os"

	"animalstore/internal/bulk"
	"animalstore/internal/commandline"
	"animalstore/internal/petfile"

	"github.com/spf13/cobra"
)

const (
	defaultWorkers = 16
	maxWorkers     = 64
)

func petsImportCommand(conn *connection) *cobra.Command {
	var format petfile.Format
	workers := defaultWorkers
	cmd := &cobra.Command{
		Use:   "import FILE|-",
		Short: "Add the pets from a file",
		Long: `Add the pets from a file, or from standard input (-), to a server's store.

CSV needs a first line with column names: name, categoryId and optionally
status. JSON Lines has one object per line with fields of these names. Other
columns and fields, such as the id in an export, are ignored.

Lines that can't be added are reported with their number and the reason, and the
others are added. The requests stay within the limits of the key, and wait when
those are used up.

An interrupted import can be run again within 24 hours: it continues, and in the
end each line has been added once. Its progress is stored next to the file, in
FILE.progress, which is removed at the end. Without that file, as with standard
input, finished lines are sent again, and the server recognizes them. To add the
same file a second time on purpose, copy it and change a line, or wait for a
day.`,
		Example: `  animalstore pets import pets.csv
  animalstore pets export | animalstore pets import --format csv -
  animalstore pets import pets.jsonl --concurrency 4`,
		Args:              commandline.OneFile(`name one file, or - for standard input. See "animalstore pets import --help"`),
		ValidArgsFunction: completeFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			if workers < 1 || workers > maxWorkers {
				return usagef("--concurrency must be 1 to %d, not %d", maxWorkers, workers)
			}
			file, err := petfile.Open(args[0], cmd.InOrStdin(), format)
			if err != nil {
				return err
			}
			defer file.Close()
			conn.bulk = true
			return conn.do(cmd, func(s session) error { return s.bulk().Import(cmd.Context(), file, workers) })
		},
	}
	commandline.RegisterOneOf(cmd, &format, petfile.Formats, "format", "csv or jsonl (default by the file's name or its first character)")
	cmd.Flags().IntVar(&workers, "concurrency", defaultWorkers, "how many requests to send at once; 1 keeps the order of the file")
	jsonFlag(cmd)
	return cmd
}

// bulk is the session for an import or export.
func (s session) bulk() bulk.Service {
	return bulk.Service{Client: s.Client, Printer: s.Printer, Line: s.line, Key: os.Getenv(keyVariable)}
}
