package console

import (
	"bytes"
	"context"
	"crypto/sha256"
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
	// maxFile is the size of a file to import, and maxFilePets how many pets it may have.
	maxFile     = 5 << 20
	maxFilePets = 10_000
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

// InStore is how many pets of the file were added, now or before.
func (r importResult) InStore() int { return r.Added + r.Existing }

// petFile is a file that was sent.
type petFile struct {
	name     string
	content  []byte
	done     string // the field of the form
	pets     []animalstore.NewPet
	mistakes []petfile.Mistake
}

// showImport serves GET /console/pets/import.
func (v *visit) showImport() error {
	if !v.c.chargeAddress(v.w, v.r) { // no call charges this page to the key
		return nil
	}
	return v.showResult(importResult{status: http.StatusOK})
}

func (v *visit) showResult(r importResult) error {
	p := importPage{frame: v.c.frame(v, "Import pets"), MaxSize: maxFile}
	if r.File != "" || r.Problem != "" {
		p.Result = &r
	}
	return v.render(r.status, "import", p)
}

// checkImport serves POST /console/pets/import/check.
func (v *visit) checkImport() error {
	file, result := v.receivePets()
	defer v.allowWork()()
	if result.status != http.StatusOK || !v.may(petsRead) {
		if !v.c.chargeAddress(v.w, v.r) { // no call charges this to the key
			return nil
		}
	}
	if result.status == http.StatusOK {
		result.Checked, result.Requests = true, (len(file.pets)+animalstore.MaxPetBatch-1)/animalstore.MaxPetBatch
		if err := v.preview(file, &result); err != nil {
			return err
		}
	}
	return v.showResult(result)
}

// preview adds what a file would add.
func (v *visit) preview(file petFile, r *importResult) error {
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
func (v *visit) addImport() error {
	file, result := v.receivePets()
	defer v.allowWork()()
	if result.status != http.StatusOK {
		if !v.c.chargeAddress(v.w, v.r) { // no call charges this to the key
			return nil
		}
		return v.showResult(result)
	}
	options := client.ImportOptions{Done: file.alreadyDone()}
	if v.r.Header.Get("Accept") == "text/plain" {
		options.OnBatch = v.startProgress(len(file.pets))
	}
	var err error
	result.PetImport, err = v.api.ImportPets(v.r.Context(), file.pets, options)
	if err != nil {
		result.Stopped = stopped(err)
		result.status, result.Done = result.Stopped.Status, file.doneOf(result.InStore())
	}
	return v.showResult(result)
}

// startProgress begins a response, and returns what adds a line to it.
func (v *visit) startProgress(pets int) func(client.PetImport) {
	v.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	v.w.Header().Set("X-Content-Type-Options", "nosniff")
	v.w.WriteHeader(http.StatusOK)
	v.w = begun{v.w}
	return func(p client.PetImport) {
		fmt.Fprintln(v.w, p.Added+p.Existing, pets)
		_ = http.NewResponseController(v.w).Flush() // without progress the page still comes
	}
}

// begun is a response whose header was sent.
type begun struct{ http.ResponseWriter }

func (begun) Header() http.Header           { return http.Header{} }
func (begun) WriteHeader(int)               {}
func (b begun) Unwrap() http.ResponseWriter { return b.ResponseWriter }

// allowWork gives a request workTimeout from now on, until the returned function is called.
func (v *visit) allowWork() context.CancelFunc {
	ctx, cancel := context.WithTimeout(v.r.Context(), workTimeout)
	v.r = v.r.WithContext(ctx)
	v.allowTime(workTimeout)
	return cancel
}

// receivePets reads a form with a file. The result has another status than 200 if its pets
// can't be added.
func (v *visit) receivePets() (file petFile, result importResult) {
	v.allowTime(uploadTimeout)
	err := file.receive(v.r)
	if err == nil {
		err = file.parse()
	}
	name := strings.ToValidUTF8(file.name, "\uFFFD")
	result = importResult{File: shorten(name, maxFileName), Pets: len(file.pets), Mistakes: file.mistakes, status: http.StatusOK}
	switch {
	case err != nil:
		result.status, result.Problem = http.StatusBadRequest, sentence(shorten(strings.ToValidUTF8(err.Error(), "\uFFFD"), maxMessage))
		if errors.Is(err, errTooLarge) {
			result.status = http.StatusRequestEntityTooLarge
		}
	case len(file.mistakes) > 0:
		result.status = http.StatusBadRequest
	}
	return file, result
}

var errTooLarge = fmt.Errorf("the file is larger than %d MiB: split it", maxFile>>20)

// receive reads a form to its end, because a browser that can't send all of it shows no
// response.
func (f *petFile) receive(r *http.Request) error {
	form, err := r.MultipartReader()
	if err != nil {
		return errors.New("files are sent with the form on this page")
	}
	for {
		part, err := form.NextPart()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			switch part.FormName() {
			case "file":
				f.name = part.FileName()
				f.content, err = io.ReadAll(io.LimitReader(part, maxFile+1))
			case "done":
				var done []byte
				done, err = io.ReadAll(io.LimitReader(part, 100))
				f.done = string(done)
			}
		}
		if err != nil {
			return errors.New(refusalText(incompleteError("the file", err)))
		}
	}
}

// parse reads the pets of the file and its mistakes.
func (f *petFile) parse() error {
	switch {
	case f.name == "":
		return errors.New("choose a file")
	case len(f.content) > maxFile:
		return errTooLarge
	case bytes.IndexByte(f.content, 0) >= 0:
		return errors.New("this isn’t a text file: save the table as CSV (UTF-8), then choose that file")
	}
	var err error
	f.pets, f.mistakes, err = petfile.Read(bytes.NewReader(f.content), petfile.FormatOf(f.name))
	switch n := len(f.pets) + len(f.mistakes); {
	case err != nil:
		return err
	case n == 0:
		return errors.New("the file has no pets")
	case n > maxFilePets:
		return fmt.Errorf("the file has more than %s pets: split it", number(maxFilePets))
	}
	return nil
}

// doneOf is a field that says how many pets of this file are added.
func (f *petFile) doneOf(pets int) string {
	return fmt.Sprintf("%x %d", sha256.Sum256(f.content), pets)
}

// alreadyDone is how many pets of this file the form says are added. Sending them again
// would add nothing, but cost requests, so that a key with few of them wouldn't get further.
func (f *petFile) alreadyDone() (pets int) {
	var sum []byte
	if _, err := fmt.Sscanf(f.done, "%x %d", &sum, &pets); err != nil || f.doneOf(pets) != f.done {
		return 0
	}
	return pets
}
