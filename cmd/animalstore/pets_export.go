package main

import (
	"cmp"
	"iter"
	"os"

	"animalstore"
	"animalstore/internal/cli"
	"animalstore/internal/petfile"
	"animalstore/internal/terminal"

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
The file only appears when it is complete. On a terminal, you are asked before
an existing file is replaced.

CSV doesn't distinguish the two kinds of line breaks within a name. JSON Lines
preserves every name exactly.`,
		Example: `  animalstore pets export pets.csv
  animalstore pets export --status sold sold.jsonl
  animalstore pets export --format jsonl | gzip > pets.jsonl.gz`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.Usagef("name one file, or none for standard output. See %q", cmd.CommandPath()+" --help")
			}
			return nil
		},
		ValidArgsFunction: cli.CompleteFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			name := "-"
			if len(args) == 1 {
				name = args[0]
			}
			if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
				if err := requireConfirmation(cmd, terminal.Visible(name)+" exists. Replace it?"); err != nil {
					return err
				}
			}
			format = cmp.Or(format, petfile.FormatOf(name), petfile.CSV)
			q := filter.query(cmd)
			q.PageSize = maxPage
			conn.bulk = true
			return conn.do(cmd, func(s session) error {
				return s.exportPets(name, format, s.ListPets(cmd.Context(), q))
			})
		},
	}
	cli.RegisterOneOf(cmd, &format, petfile.Formats, "format", "csv or jsonl (default by the file's name, else csv)")
	filter.register(cmd)
	yesFlag(cmd)
	return cmd
}

// exportPets writes the pets to a file, or to the printer's output if the name is "-".
func (s session) exportPets(name string, format petfile.Format, pets iter.Seq2[animalstore.Pet, error]) error {
	progress := s.line.Progress(-1, "pets")
	err := petfile.Export(name, s.Out, format, pets, func() { progress.SetPace(s.pace()); progress.Add(1) })
	progress.Clear()
	if err == nil {
		s.Note("Exported %s.", terminal.Count(progress.Done(), "pet", "pets"))
	}
	return err
}
