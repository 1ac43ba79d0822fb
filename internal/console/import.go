package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"animalstore"
	"animalstore/client"
	"animalstore/internal/petfile"
)

const (
	// workTimeout limits an import, an export and a change of many pets.
	workTimeout = 2 * time.Minute
	// previewRows is how many pets of a file a check shows.
	previewRows = 10
	// maxMessage is how many code points of a message about a whole file are shown: it may
	// quote the file.
	maxMessage = 300
)

type importPage struct {
	frame
	MaxSize int64
	Result  *importResult // nil: nothing was sent
}

// importResult is what a page says about a file.
type importResult struct {
	File     string // its name
	Problem  string // why it can't be read
	Mistakes []petfile.Mistake
	Pets     int

	// What a check found.
	Checked       bool
	Preview       []petRow
	Requests      int
	NewCategories []int64
	MaybeNew      bool // the store has too many categories to be sure

	// What an import did.
	client.PetImport
	Stopped *problem // why it didn't add all
	Done    string   // how far it got, for the next form; see doneOf

	status int
}

// StoppedAt is the line of the last mistake if the rest of the file wasn't read, or 0.
func (r importResult) StoppedAt() int64 {
	if len(r.Mistakes) < maxMistakes {
		return 0
	}
	return r.Mistakes[maxMistakes-1].Line
}

// InStore is how many pets of the file were added, now or before.
func (r importResult) InStore() int { return r.Added + r.Existing }

// showImport serves GET /console/pets/import.
func (v *visit) showImport() error {
	if err := v.chargeAddress(); err != nil { // no call charges this page to the key
		return err
	}
	return v.showResult(importResult{status: http.StatusOK})
}

func (v *visit) showResult(r importResult) error {
	p := importPage{frame: v.frame("Import pets"), MaxSize: maxFile}
	if r.File != "" || r.Problem != "" {
		p.Result = &r
	}
	return v.render(r.status, "import", p)
}

// checkImport serves POST /console/pets/import/check.
func (v *visit) checkImport() error {
	return v.serveFile(&petFile{}, func(file *petFile, r *importResult) error {
		r.Checked, r.Requests = true, 1+(len(file.pets)+animalstore.MaxPetBatch-1)/animalstore.MaxPetBatch
		return v.preview(file, r)
	})
}

// preview adds what a file would add.
func (v *visit) preview(file *petFile, r *importResult) error {
	c := &categories{}
	if v.may(petsRead) {
		var err error
		if c, err = v.readCategories(); err != nil {
			return err
		}
		isNew := func(p animalstore.NewPet) bool { return c.index(p.CategoryID) < 0 }
		for calls := 1; c.More() && calls < categoryCalls && slices.ContainsFunc(file.pets, isNew); calls++ {
			if err := v.readMoreCategories(c); err != nil {
				return err
			}
		}
		for _, p := range file.pets {
			if isNew(p) {
				r.NewCategories = append(r.NewCategories, p.CategoryID)
			}
		}
		slices.Sort(r.NewCategories)
		r.NewCategories, r.MaybeNew = slices.Compact(r.NewCategories), c.More()
	}
	for _, p := range file.pets[:min(previewRows, len(file.pets))] {
		r.Preview = append(r.Preview, petRow{Pet: p.Pet(), Category: c.Name(p.CategoryID)})
	}
	return nil
}

// addImport serves POST /console/pets/import/add. The script asks for text: a line after each
// call of the API, then the page.
func (v *visit) addImport() error { return v.serveFile(&petFile{adding: true}, v.addPets) }

func (v *visit) addPets(file *petFile, r *importResult) error {
	options := client.ImportOptions{Done: file.alreadyDone()}
	if v.r.Header.Get("Accept") == "text/plain" {
		options.OnBatch = v.startProgress(len(file.pets))
	}
	var err error
	r.PetImport, err = v.api.ImportPets(v.r.Context(), file.pets, options)
	if err != nil {
		r.Stopped = stopped(err)
		r.status, r.Done = r.Stopped.Status, file.doneOf(r.InStore())
	}
	return nil
}

// serveFile shows the result of a form with a file, which use gets if its pets can be added.
func (v *visit) serveFile(file *petFile, use func(*petFile, *importResult) error) error {
	_ = http.NewResponseController(v.w).EnableFullDuplex()    // connections support it: a refusal precedes the form
	v.allowTime(v.c.RequestTimeout)                           // others can't import while two files arrive slowly
	if _, err := v.api.GetLimits(v.r.Context()); err != nil { // charges the key for reading the file
		v.fail(err)
		return v.skipForm()
	}
	release, ok := v.c.imports.acquire(v.key.ID)
	if !ok {
		v.w.Header().Set("Retry-After", "1")
		_ = v.showResult(importResult{Problem: "The server is busy with other files: try again in a moment.", status: http.StatusServiceUnavailable})
		return v.skipForm()
	}
	result, err := v.useFile(file, use, release)
	if err != nil {
		return err
	}
	return v.showResult(result)
}

// skipForm discards a form that wasn't read, because a browser that can't send all of it shows
// no response.
func (v *visit) skipForm() error {
	_ = http.NewResponseController(v.w).Flush()
	_, _ = io.CopyBuffer(struct{ io.Writer }{io.Discard}, v.r.Body, make([]byte, 512)) // io.Copy takes more memory
	return nil
}

// useFile reads a file and calls use if its pets can be added. It releases the slot, so that
// nobody waits for a browser that is slow to receive the result.
func (v *visit) useFile(file *petFile, use func(*petFile, *importResult) error, release func()) (importResult, error) {
	defer release()
	result := v.receivePets(file)
	if result.status != http.StatusOK {
		return result, nil
	}
	defer v.allowWork()()
	err := use(file, &result)
	return result, err
}

// startProgress begins a response, and returns what adds a line to it. The page follows.
func (v *visit) startProgress(pets int) func(client.PetImport) {
	v.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	v.w.Header().Set("X-Content-Type-Options", "nosniff")
	v.w.WriteHeader(http.StatusOK)
	v.begun = true
	return func(p client.PetImport) {
		control := http.NewResponseController(v.w)
		_ = control.SetWriteDeadline(time.Now().Add(v.c.RequestTimeout)) // the slot is still taken
		fmt.Fprintln(v.w, p.Added+p.Existing, pets)
		_ = control.Flush() // without progress the page still comes
		v.allowTime(workTimeout)
	}
}

// allowWork gives a request workTimeout from now on, until the returned function is called.
func (v *visit) allowWork() context.CancelFunc {
	ctx, cancel := context.WithTimeout(v.r.Context(), workTimeout)
	v.r = v.r.WithContext(ctx)
	v.allowTime(workTimeout)
	return cancel
}

// receivePets reads a form with a file. The result has another status than 200 if its pets
// can't be added.
func (v *visit) receivePets(file *petFile) importResult {
	err := file.receive(v.r, v.c.RequestTimeout)
	name := strings.ToValidUTF8(file.name, "\uFFFD")
	result := importResult{File: shorten(name, maxFileName), Pets: len(file.pets), Mistakes: file.mistakes, status: http.StatusOK}
	switch {
	case errors.Is(err, errTooLarge):
		result.status = http.StatusRequestEntityTooLarge
	case err != nil, len(file.mistakes) > 0:
		result.status = http.StatusBadRequest
	}
	if err != nil {
		result.Problem = sentence(shorten(strings.ToValidUTF8(err.Error(), "\uFFFD"), maxMessage))
	}
	return result
}
