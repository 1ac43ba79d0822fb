// Package bulk imports and exports pets over HTTP, and shows how that is going.
package bulk

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"animalstore"
	"animalstore/client"
	"animalstore/internal/db"
	"animalstore/internal/petfile"
	"animalstore/internal/terminal"
)

// Service is the store that pets are imported to or exported from, and where progress
// is shown.
type Service struct {
	*client.Client
	*terminal.Printer
	Line *terminal.Line
	Key  string // of the client; a journal continues only with the same one
}

// RefusedError is the number of lines that couldn't be added. The others were.
type RefusedError int64

func (n RefusedError) Error() string {
	if n == 1 {
		return "1 line couldn't be added: fix it and import it again"
	}
	return fmt.Sprintf("%s couldn't be added: fix them and import them again", terminal.Count(int64(n), "line", "lines"))
}

// Import adds the pets of a file by several workers at once, and prints the result.
func (s Service) Import(ctx context.Context, file *petfile.File, workers int) error {
	progress := s.Line.Progress(file.Pets, "pets")
	run := petfile.Import{File: file, Workers: workers, Add: s.addRow, Observer: report{s, progress, file.Name}}
	if file.Pets >= 0 {
		run.Journal = petfile.NewJournal(file.Name)
		run.Journal.Server, run.Journal.Credential = s.BaseURL(), s.Key
		// An hour before the server forgets, so that the rest has time to arrive.
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
		s.Note("The import is incomplete. Run the same command again within 24 hours, with the same key: it continues, and adds nothing twice.")
		return err
	case result.Refused > 0:
		return errors.Join(RefusedError(result.Refused), err)
	}
	return err
}

// addRow is a petfile.AddFunc.
func (s Service) addRow(ctx context.Context, pet animalstore.NewPet, idempotencyKey string) (existed bool, err error) {
	var meta client.Meta
	_, err = s.CreatePet(ctx, pet, client.IdempotencyKey(idempotencyKey), client.ReadMeta(&meta))
	var coded *animalstore.Error
	if errors.As(err, &coded) && (meta.Status == 400 || meta.Status == 413) {
		return false, petfile.Refusal(coded.Message)
	}
	return meta.Replayed, err
}

// report shows an import as it happens.
type report struct {
	Service
	progress *terminal.Progress
	file     string
}

func (r report) Resumed(rows int64) {
	r.Note("Continuing after %s from an earlier run.", terminal.Count(rows, "line", "lines"))
	r.progress.AddDone(rows)
}

func (r report) Restarted() {
	r.Note("%s has changed since its import was interrupted, so it is sent from the start. Lines that haven't changed are not added again.", terminal.Visible(r.file))
}

func (r report) Done(line int64, refusal error) {
	if refusal != nil {
		fmt.Fprintf(r.Notes, "line %d: %s\n", line, terminal.Visible(refusal.Error()))
	}
	r.progress.SetPace(r.pace())
	r.progress.Add(1)
}

// pace says that the client sends requests more slowly than it could, to spread what is
// left over the minute; "" if it doesn't. See [client.WithPacing].
func (s Service) pace() string {
	limit, known := s.RateLimit()
	if !known || 2*limit.Remaining > limit.Limit || time.Until(limit.Reset) > time.Minute+2*time.Second {
		return ""
	}
	return fmt.Sprintf("Pacing: the key allows %s requests a minute", terminal.Grouped(limit.Limit))
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

// Export writes the pets to a file, or to the printer's output if the name is "-".
func (s Service) Export(name string, format petfile.Format, pets iter.Seq2[animalstore.Pet, error]) error {
	progress := s.Line.Progress(-1, "pets")
	err := petfile.Export(name, s.Out, format, pets, func() { progress.SetPace(s.pace()); progress.Add(1) })
	progress.Clear()
	if err == nil {
		s.Note("Exported %s.", terminal.Count(progress.Done(), "pet", "pets"))
	}
	return err
}
