package main

import (
	"cmp"
	"iter"
	"os"
	"time"

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
output, newest first, as CSV or JSON Lines. A pet that exists during the
whole export is written exactly once, even if other pets change.

Requests stay within the limits of the key. The file only appears when it is
complete. On a terminal, you are asked before an existing file is replaced.

In CSV, a name that a spreadsheet would run as a formula, because it begins with
=, +, -, @, a tab or a carriage return, gets an apostrophe in front, which
"pets import" removes. CSV doesn't distinguish the two kinds of line breaks
within a name. JSON Lines preserves every name exactly.

A file that is replaced keeps its mode.`,
		Example: `  animalstore pets export pets.csv
  animalstore pets export --status sold sold.jsonl
  animalstore pets export --format jsonl | gzip > pets.jsonl.gz`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.Usagef("give one file, or none for standard output")
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
			conn.bulk = true
			return conn.do(cmd, func(s invocation) error {
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
func (s invocation) exportPets(name string, format petfile.Format, pets iter.Seq2[animalstore.Pet, error]) error {
	progress := s.line.Progress(-1, "pets")
	paceNoted := false
	err := petfile.Export(name, s.Out, format, pets, func() {
		s.notePace(&paceNoted)
		progress.Add(1)
	})
	progress.Clear()
	if err == nil {
		s.Note("Exported %s.", terminal.Count(progress.Done(), "pet", "pets"))
	}
	return err
}

// notePace says once that the client slows down to stay within its limit. See
// [client.WithPacing].
func (s invocation) notePace(noted *bool) {
	limit, known := s.RateLimit()
	if *noted || !known || 2*limit.Remaining > limit.Limit || time.Until(limit.Reset) > time.Minute+2*time.Second {
		return
	}
	*noted = true
	s.Note("Slowing down: the key allows %s requests per minute.", terminal.Grouped(limit.Limit))
}
