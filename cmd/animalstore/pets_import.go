package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"

	"animalstore"
	"animalstore/client"
	"animalstore/internal/cli"
	"animalstore/internal/petfile"
	"animalstore/internal/terminal"

	"github.com/spf13/cobra"
)

func petsImportCommand(conn *connection) *cobra.Command {
	var format petfile.Format
	again, output := "", ""
	cmd := &cobra.Command{
		Use:   "import FILE|-",
		Short: "Add the pets from a file",
		Long: `Add the pets from a file, or from standard input (-), to a server's store.

CSV needs a first line with column names, in any case: name, categoryId and
optionally status. The separator is a comma or a semicolon. JSON Lines has one
object per line with fields of these names. Other columns and fields, such as
the id in an export, are ignored.

The whole file is checked first. If a line can't be added, all such lines are
reported with the reason, and nothing is added. Pets are then added in the order
of the file, 100 per request, within the limits of the key.

If the import is interrupted, its last line is the command that continues it,
with the same key, within 24 hours of the first run: no line is added twice. If
any pet in the file has changed, it is a new import, which adds all of them.
--again adds the same file once more.

--output writes a file with everything in the input, in the same order and
format, with the id of each pet as the last column or field, to a file or to
standard output (-). The file only appears when the import is complete. If the
import is continued, or repeated because the file couldn't be written, it has
the ids of all pets, also of those that an earlier run added. On
a terminal, you are asked before an existing file is replaced.`,
		Example: `  animalstore pets import pets.csv
  animalstore pets export | animalstore pets import --format csv -
  animalstore pets import pets.csv --output pets-with-ids.csv
  animalstore pets import pets.jsonl --again`,
		Args:              cli.OneFile("give one file, or - for standard input"),
		ValidArgsFunction: cli.CompleteFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			pets, mistakes, out, err := readImport(cmd, args[0], format, output)
			if err != nil {
				return err
			}
			if out != nil {
				defer out.Close()
			}
			if len(mistakes) > 0 {
				return reportMistakes(newPrinter(cmd), mistakes)
			}
			conn.bulk = true
			err = conn.do(cmd, func(s invocation) error { return s.importPets(cmd.Context(), pets, &again, out) })
			if errors.As(err, new(incomplete)) {
				err = continueImport(cmd, args[0], err)
			}
			return err
		},
	}
	cli.RegisterOneOf(cmd, &format, petfile.Formats, "format", "csv or jsonl (default by the file's name or its first character)")
	cmd.Flags().StringVar(&again, againFlag, "", "add the file once more; with the `run` that was interrupted, continue that")
	cmd.Flags().Lookup(againFlag).NoOptDefVal = newRun
	cmd.Flags().StringVarP(&output, "output", "o", "", "also write the input with the pets' ids to this `file`")
	yesFlag(cmd)
	jsonFlag(cmd)
	return cmd
}

const (
	againFlag = "again"
	newRun    = "new" // --again without a value
)

// importResult is the result of an import in JSON.
type importResult struct {
	Added    int  `json:"added"`
	Existing int  `json:"existing"`
	Unknown  int  `json:"unknown"`
	Refused  int  `json:"refused"`
	Complete bool `json:"complete"`
}

// reportMistakes prints why lines of a file can't be added.
func reportMistakes(p *terminal.Printer, mistakes []petfile.Mistake) error {
	for _, m := range mistakes {
		p.Note("line %d: %s", m.Line, terminal.Visible(m.Err.Error()))
	}
	refused := len(mistakes)
	err := p.Result(importResult{Refused: refused}, "Added nothing.")
	return errors.Join(fmt.Errorf("%s can't be added: fix and import again", terminal.Count(int64(refused), "line", "lines")), err)
}

// endedEarly marks the error of an import as one to continue after, unless that is a refusal
// before the first pet: the same request would be refused again.
func endedEarly(done client.PetImport, err error) error {
	var refused *client.Error
	if done.Added+done.Existing+done.Unknown == 0 && errors.As(err, &refused) {
		switch refused.Status {
		case http.StatusBadRequest, http.StatusForbidden, http.StatusUnprocessableEntity:
			return err
		}
	}
	return incomplete{err}
}

// continueImport adds how to continue an import to its error.
func continueImport(cmd *cobra.Command, file string, err error) error {
	same := "the same key"
	if file == "-" {
		same = "the same key and input"
	}
	return continueWith(err, "To continue the import, run this with "+same+", within 24 hours of the first run", sameCommand(cmd, againFlag, file))
}

// readImport reads the pets of a file, and prepares the output unless its name is "".
func readImport(cmd *cobra.Command, input string, format petfile.Format, output string) (
	pets []animalstore.NewPet, mistakes []petfile.Mistake, out *petfile.Output, err error,
) {
	if err := cli.NotEmpty(cmd, "output"); err != nil {
		return nil, nil, nil, err
	}
	if output == "" {
		pets, mistakes, err = petfile.ReadFile(input, cmd.InOrStdin(), format)
		return pets, mistakes, nil, err
	}
	if out, err = createOutput(cmd, output, input, format); err != nil {
		return nil, nil, nil, err
	}
	if pets, mistakes, err = out.Read(); err != nil {
		out.Close()
		return nil, nil, nil, err
	}
	return pets, mistakes, out, nil
}

// createOutput prepares the file for the ids of an import. The input isn't replaced: it may be
// the only copy of the shop's own list.
func createOutput(cmd *cobra.Command, name, input string, format petfile.Format) (*petfile.Output, error) {
	if name == "-" && newPrinter(cmd).JSON {
		return nil, cli.Usagef("--output - and --json would both write to standard output: give --output a file")
	}
	if info, err := os.Stat(name); name != "-" && err == nil && info.Mode().IsRegular() {
		if given, err := os.Stat(input); err == nil && os.SameFile(info, given) {
			return nil, cli.Usagef("--output is the file to import: give it another name")
		}
		if err := requireConfirmation(cmd, terminal.Visible(name)+" exists. Replace it?"); err != nil {
			return nil, err
		}
	}
	return petfile.CreateOutput(name, cmd.OutOrStdout(), input, cmd.InOrStdin(), format)
}

// importPets adds pets, writes their ids to out unless that is nil, and prints the result.
// again is the value of --again, and becomes that of the run.
func (s invocation) importPets(ctx context.Context, pets []animalstore.NewPet, again *string, out *petfile.Output) error {
	if *again == newRun {
		*again = rand.Text()[:6]
		s.Note("Adding the file once more. To continue after an interruption, use --again=%s.", *again)
	}
	if len(pets) > animalstore.MaxPetBatch {
		if err := s.noteCost(ctx, len(pets)); err != nil {
			return endedEarly(client.PetImport{}, err)
		}
	}
	progress := s.line.Progress(int64(len(pets)), "pets")
	paceNoted := false
	var before client.PetImport
	done, err := s.ImportPets(ctx, pets, client.ImportOptions{Salt: *again, OnBatch: func(done client.PetImport) {
		s.notePace(&paceNoted)
		progress.Skip(int64(done.Existing - before.Existing))
		progress.Add(done.Added - before.Added)
		before = done
	}})
	progress.Clear()
	if err != nil {
		err = endedEarly(done, err)
	} else if out != nil {
		if err = out.Write(done.Pets); err != nil {
			err = incomplete{err} // the next run gets the ids once more
		}
	}
	text := "Added " + terminal.Count(int64(done.Added), "pet", "pets")
	if done.Existing > 0 {
		text += fmt.Sprintf("; %s had been added by an earlier run", terminal.Grouped(int64(done.Existing)))
	}
	if done.Unknown > 0 {
		text += fmt.Sprintf("; up to %s more may have been added", terminal.Grouped(int64(done.Unknown)))
	}
	printErr := s.Result(importResult{done.Added, done.Existing, done.Unknown, 0, err == nil}, "%s.", text)
	return errors.Join(err, printErr)
}

// noteCost says how many requests an import takes, and warns if that is more than the key
// may send today.
func (s invocation) noteCost(ctx context.Context, pets int) error {
	limits, err := s.GetLimits(ctx)
	if err != nil {
		return err
	}
	requests := int64((pets + animalstore.MaxPetBatch - 1) / animalstore.MaxPetBatch)
	s.Note("%s, %s.", terminal.Count(int64(pets), "pet", "pets"), terminal.Count(requests, "request", "requests"))
	if today := limits.Day.Remaining; requests > today {
		s.Note("The key has %s left today: only %s can be added before %s UTC, and until then the key can't be used for anything else.",
			terminal.Count(today, "request", "requests"), terminal.Count(today*animalstore.MaxPetBatch, "pet", "pets"),
			terminal.DateTime(limits.Day.Reset.Time))
	}
	return nil
}
