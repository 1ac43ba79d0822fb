package main

import (
	"cmp"

	"animalstore/internal/commandline"
	"animalstore/internal/petfile"

	"github.com/spf13/cobra"
)

func petsExportCommand(conn *connection) *cobra.Command {
	var format petfile.Format
	var filter petFilter
	cmd := &cobra.Command{
		Use:   "export [FILE]",
		Short: "Write pets to a file",
		Long: `Write all pets, or those that match the filters, to a file or to standard
output, the latest first, as CSV or JSON Lines. A pet that exists during the
whole export is written exactly once, even if other pets change meanwhile.

The requests stay within the limits of the key, and wait when those are used up.
The file only appears when it is complete.

CSV doesn't distinguish the two kinds of line breaks within a name. JSON Lines
preserves every name exactly.`,
		Example: `  animalstore pets export pets.csv
  animalstore pets export --status sold sold.jsonl
  animalstore pets export --format jsonl | gzip > pets.jsonl.gz`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("name one file, or none for standard output. See %q", cmd.CommandPath()+" --help")
			}
			return nil
		},
		ValidArgsFunction: completeFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			name := "-"
			if len(args) == 1 {
				name = args[0]
			}
			format = cmp.Or(format, petfile.FormatOf(name), petfile.CSV)
			q := filter.query(cmd)
			q.PageSize = maxPage
			conn.bulk = true
			return conn.do(cmd, func(s session) error {
				return s.bulk().Export(name, format, s.ListPets(cmd.Context(), q))
			})
		},
	}
	commandline.RegisterOneOf(cmd, &format, petfile.Formats, "format", "csv or jsonl (default by the file's name, else csv)")
	filter.register(cmd, conn)
	return cmd
}
