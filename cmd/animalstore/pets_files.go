package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"time"

	"animalstore"
	"animalstore/client"
	"animalstore/internal/cli"
	"animalstore/internal/db"
	"animalstore/internal/petfile"
	"animalstore/internal/terminal"

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
others are added. Requests stay within the limits of the key.

To continue an interrupted import, run it again within 23 hours: no line is
added twice. Its progress is stored in FILE.progress, which is removed at the
end. Without that file, as with standard input, all lines are sent again, and
the server recognizes those it has added. To add the same lines again on
purpose, wait for a day.`,
		Example: `  animalstore pets import pets.csv
  animalstore pets export | animalstore pets import --format csv -
  animalstore pets import pets.jsonl --concurrency 4`,
		Args:              cli.OneFile("give one file, or - for standard input"),
		ValidArgsFunction: cli.CompleteFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			if workers < 1 || workers > maxWorkers {
				return cli.Usagef("--concurrency must be 1 to %d, not %d", maxWorkers, workers)
			}
			file, err := petfile.Open(args[0], cmd.InOrStdin(), format)
			if err != nil {
				return err
			}
			defer file.Close()
			conn.bulk = true
			return conn.do(cmd, func(s session) error { return s.importPets(cmd.Context(), file, workers) })
		},
	}
	cli.RegisterOneOf(cmd, &format, petfile.Formats, "format", "csv or jsonl (default by the file's name or its first character)")
	cmd.Flags().IntVar(&workers, "concurrency", defaultWorkers, "how many requests to send at once; 1 keeps the order of the file")
	jsonFlag(cmd)
	return cmd
}

// importPets adds the pets of a file by several workers at once, and prints the result.
func (s session) importPets(ctx context.Context, file *petfile.File, workers int) error {
	progress := s.line.Progress(file.Pets, "pets")
	run := petfile.Import{File: file, Workers: workers, Add: s.addRow, Observer: &importReport{session: s, progress: progress, file: file.Name}}
	if file.Pets >= 0 {
		run.Journal = petfile.NewJournal(file.Name)
		run.Journal.Server, run.Journal.Credential = s.BaseURL(), os.Getenv(keyVariable)
		// The last request must arrive before the server's idempotency records expire.
		run.Journal.MaxAge = db.IdempotencyWindow - time.Hour
	}
	result, err := run.Run(ctx)
	progress.Clear()
	if result == nil {
		return err
	}
	summary := struct {
		Added    int64 `json:"added"`
		Existing int64 `json:"existing"`
		Refused  int64 `json:"refused"`
		Complete bool  `json:"complete"`
	}{result.Added, result.Existing, result.Refused, result.Complete}
	err = errors.Join(err, s.Result(summary, "%s.", tallyText(result.Tally)))
	if result.JournalErr != nil {
		s.Note("The progress couldn't be saved: %s", terminal.Visible(result.JournalErr.Error()))
	}
	switch {
	case !result.Complete:
		s.Note("The import is incomplete. To continue, run the same command with the same key within 23 hours.")
		return err
	case result.Refused > 0:
		return errors.Join(fmt.Errorf("%s couldn't be added: fix and import again", terminal.Count(result.Refused, "line", "lines")), err)
	}
	return err
}

// addRow is a petfile.AddFunc.
func (s session) addRow(ctx context.Context, pet animalstore.NewPet, idempotencyKey string) (existed bool, err error) {
	var meta client.Meta
	_, err = s.CreatePet(ctx, pet, client.IdempotencyKey(idempotencyKey), client.ReadMeta(&meta))
	var coded *animalstore.Error
	if errors.As(err, &coded) && (meta.Status == 400 || meta.Status == 413) {
		return false, petfile.Refusal(coded.Message)
	}
	return meta.Replayed, err
}

// importReport prints the progress of an import.
type importReport struct {
	session
	progress  *terminal.Progress
	file      string
	paceNoted bool
}

func (r *importReport) Resumed(rows int64) {
	r.Note("Continuing after %s from an earlier run.", terminal.Count(rows, "line", "lines"))
	r.progress.Skip(rows)
}

func (r *importReport) Restarted() {
	r.Note("%s has changed, so the import starts over. Unchanged lines aren't added again.", terminal.Visible(r.file))
}

func (r *importReport) Done(line int64, refusal error) {
	if refusal != nil {
		fmt.Fprintf(r.Notes, "line %d: %s\n", line, terminal.Visible(refusal.Error()))
	}
	r.notePace(&r.paceNoted)
	r.progress.Add(1)
}

// notePace says once that the client slows down to stay within its limit. See
// [client.WithPacing].
func (s session) notePace(noted *bool) {
	limit, known := s.RateLimit()
	if *noted || !known || 2*limit.Remaining > limit.Limit || time.Until(limit.Reset) > time.Minute+2*time.Second {
		return
	}
	*noted = true
	s.Note("Slowing down: the key allows %s requests per minute.", terminal.Grouped(limit.Limit))
}

func tallyText(t petfile.Tally) string {
	text := fmt.Sprintf("Added %s", terminal.Count(t.Added, "pet", "pets"))
	if t.Existing > 0 {
		text += fmt.Sprintf("; %s had been added by an earlier run", terminal.Grouped(t.Existing))
	}
	if t.Refused > 0 {
		text += fmt.Sprintf("; refused %s", terminal.Count(t.Refused, "line", "lines"))
	}
	return text
}

func petsExportCommand(conn *connection) *cobra.Command {
	var format petfile.Format
	var filter petFilter
	cmd := &cobra.Command{
		Use:   "export [FILE]",
		Short: "Write pets to a file",
		Long: `Write all pets, or those that match the filters, to a file or to standard
output, the latest first, as CSV or JSON Lines. A pet that exists during the
whole export is written exactly once, even if other pets change.

Requests stay within the limits of the key. The file only appears when it is
complete. On a terminal, you are asked before an existing file is replaced.

CSV doesn't distinguish the two kinds of line breaks within a name. JSON Lines
preserves every name exactly.`,
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
