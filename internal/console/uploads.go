package console

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"animalstore"
	"animalstore/client"
)

const (
	// maxFiles is how many files of a form are read: more than a pet may have photos, so that
	// the page can name those that were too many.
	maxFiles = 2 * animalstore.MaxPhotos
	// maxFileBytes limits the size of all files of a form, maxUpload that of the form.
	maxFileBytes = maxFiles * animalstore.MaxUpload
	maxUpload    = maxFileBytes + 1<<20
	// maxPartHeader limits what precedes a file in a form, because it is kept in memory.
	maxPartHeader = 64 << 10
	// uploadTimeout is how long one file may take to arrive. The API has the same limit.
	uploadTimeout = 60 * time.Second
	// maxFileName is how many code points of a file's name a page shows.
	maxFileName = 80
)

// isUpload reports whether a request sends files, which aren't kept in memory as other forms
// are.
func isUpload(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasPrefix(r.URL.Path, "/console/pets") &&
		(r.URL.Path == "/console/pets" || strings.HasSuffix(r.URL.Path, "/photos") || strings.HasPrefix(r.URL.Path, importPath+"/")) &&
		strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/form-data")
}

// refusedFile is a file that didn't become a photo.
type refusedFile struct {
	Name   string
	Reason string
	err    error
}

// addPhotos serves POST /console/pets/{id}/photos. Each file is passed on to the API as it
// arrives: the API decides how many pictures may be in memory.
func (v *visit) addPhotos() error {
	u := upload{v: v, pet: v.id}
	err := u.receive()
	defer v.allowPage()()
	if err != nil {
		return err
	}
	return u.respond()
}

// upload is a form with photos.
type upload struct {
	v   *visit
	pet int64 // 0 until it is added
	// addPet adds the pet, once all fields that precede the photos are known. Its error ends the
	// upload.
	addPet func() (pet int64, err error)
	form   *parts
	once   string // of the form
	fields int    // their size so far
	files  int    // seen so far
	sent   gallery
	// stop is why no more files can be added, or nil.
	stop error
	// broken is whether the rest of the form can't be read.
	broken bool
}

// receive reads a form and adds its photos. The error is for a form that was refused as a
// whole.
func (u *upload) receive() (err error) {
	if u.form, err = readParts(u.v.r); err != nil {
		return badField("", "photos are sent with the form on the page of the pet")
	}
	u.v.r.PostForm = url.Values{}
	u.v.allowTime(uploadTimeout)
	err = u.readParts()
	switch {
	case err != nil || u.pet != 0:
		return err
	case len(u.sent.Refused) > 0: // the form was cut off
		return u.sent.Refused[0].err
	}
	u.pet, err = u.addPet() // there was no photo
	return err
}

// allowPage gives a page RequestTimeout from now on, until the returned function is called.
func (v *visit) allowPage() context.CancelFunc {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(v.r.Context()), v.c.RequestTimeout)
	v.r = v.r.WithContext(ctx)
	v.allowTime(v.c.RequestTimeout)
	return cancel
}

func (u *upload) readParts() (failed error) {
	for !u.broken {
		part, err := u.form.next()
		if err == io.EOF {
			return failed
		}
		if err != nil {
			u.refuse("", incompleteError("the form", err, uploadTimeout))
			return failed
		}
		switch name := part.FileName(); {
		case failed != nil: // a browser that can't send all of a form shows no response
		case part.FormName() != "photo":
			if err := u.readField(part); err != nil {
				failed = err
			}
		case name == "": // no file was chosen
		case u.files == maxFiles:
			u.refuse("", badField("", fmt.Sprintf("only the first %d files were read: add the others separately", maxFiles)))
			return nil
		default:
			failed = u.readFile(part, name)
		}
	}
	return failed
}

// readField keeps a field as if the form had no files: all fields together have the size of a
// form.
func (u *upload) readField(part *multipart.Part) error {
	text, err := io.ReadAll(io.LimitReader(part, maxForm+1))
	u.fields += len(part.FormName()) + len(text) + 100 // for what keeps them
	if err != nil || u.fields > maxForm {
		return badField("", "the form is too large")
	}
	u.v.r.PostForm.Add(part.FormName(), string(text))
	return nil
}

// readFile adds a photo. The error is one that ends the upload.
func (u *upload) readFile(part *multipart.Part, name string) error {
	if u.pet == 0 {
		var err error
		if u.pet, err = u.addPet(); err != nil {
			return err
		}
	}
	u.files++
	err := u.add(part)
	u.v.allowTime(uploadTimeout) // for the next one
	if codeOf(err) == animalstore.PetNotFound || codeOf(err) == animalstore.InvalidAPIKey {
		return err
	}
	if err != nil {
		u.refuse(name, err)
	}
	return nil
}

// add sends a file to the API.
func (u *upload) add(part *multipart.Part) error {
	if u.stop != nil {
		return u.stop
	}
	file := &fileReader{from: part}
	body := bufio.NewReaderSize(file, 512)
	start, _ := body.Peek(512) // file has the error
	in, err := http.NewRequestWithContext(u.v.r.Context(), http.MethodPost, fmt.Sprintf("http://console/v1/pets/%d/photos", u.pet), body)
	if err != nil {
		return err
	}
	in.ContentLength = -1
	in.Header.Set("Content-Type", http.DetectContentType(start)) // browsers go by the file's extension
	in.Header.Set("Idempotency-Key", u.idempotencyKey(part.FileName()))
	res, err := u.v.transport(u.v.w).RoundTrip(in)
	u.broken = file.err != nil
	switch {
	case err != nil:
		return err
	case u.broken && res.StatusCode != http.StatusServiceUnavailable: // the API may have cut it off
		return incompleteError("it", file.err, uploadTimeout)
	case res.StatusCode == http.StatusCreated:
		u.sent.Added++
		return nil
	}
	err = refusal(res, u.v.c.Now())
	if res.StatusCode == http.StatusTooManyRequests || codeOf(err) == animalstore.TooManyPhotos {
		u.stop = err
	}
	return err
}

// fileReader keeps the error that ended a file too early.
type fileReader struct {
	from io.Reader
	err  error
}

func (f *fileReader) Read(p []byte) (int, error) {
	n, err := f.from.Read(p)
	if err != nil && err != io.EOF {
		f.err = err
	}
	return n, err
}

// idempotencyKey adds each file of a form once, however often the form is sent.
func (u *upload) idempotencyKey(name string) string {
	if u.once == "" {
		if u.once = u.v.field("once"); !validOnce(u.once) {
			u.once = newOnce()
		}
	}
	hash := sha256.Sum256(fmt.Appendf(nil, "%s %d %s", u.once, u.files, name))
	return "console-" + hex.EncodeToString(hash[:16])
}

// allowTime gives the browser this long to send the next part of the form, and a little
// longer to receive the response.
func (v *visit) allowTime(d time.Duration) {
	control := http.NewResponseController(v.w)
	_ = control.SetReadDeadline(time.Now().Add(d)) // connections support both
	_ = control.SetWriteDeadline(time.Now().Add(d + v.c.RequestTimeout + 5*time.Second))
}

// refuse notes a file, or "" for the rest of a form.
func (u *upload) refuse(name string, err error) {
	name = strings.ToValidUTF8(name, "\uFFFD")
	if short := shorten(name, maxFileName); short != name {
		name = short + "…"
	}
	u.sent.Refused = append(u.sent.Refused, refusedFile{name, photoRefusal(err), err})
}

// respond shows the pet with its photos, and the files that were refused. The script, which
// sends one file at a time, is told why it was refused.
func (u *upload) respond() error {
	v := u.v
	if len(u.sent.Refused) == 0 && u.sent.Added == 0 {
		u.refuse("", badField("", "choose at least one picture"))
	}
	if v.wantsJSON() {
		return u.respondJSON()
	}
	switch refused := u.sent.Refused; {
	case len(refused) == 0 && u.sent.Added == 1:
		return v.goTo(v.petPath(u.pet), "photo-added")
	case len(refused) == 0:
		return v.goTo(v.petPath(u.pet), "photos-added")
	case !v.may(petsRead):
		return refused[0].err
	}
	var limited *client.RateLimitError
	if errors.As(u.stop, &limited) { // so is the page
		p := limitedBy(limited)
		p.Message = u.sent.Summary() + " " + p.Message
		return p
	}
	return v.showPetWith(u.status(), u.pet, u.sent)
}

// status is that of a response with files that were refused.
func (u *upload) status() int {
	var first *client.Error
	if errors.As(u.sent.Refused[0].err, &first) {
		return first.Status
	}
	return http.StatusBadRequest
}

// wantsJSON reports whether the script made the request.
func (v *visit) wantsJSON() bool { return v.r.Header.Get("Accept") == "application/json" }

// uploadResult is the response to the script.
type uploadResult struct {
	Page    string `json:"page"`              // to open afterwards
	Photos  string `json:"photos"`            // where photos of the pet are sent
	Problem string `json:"problem,omitempty"` // why the photo wasn't added
}

func (v *visit) uploadResult(pet int64) uploadResult {
	return uploadResult{Page: v.petPath(pet), Photos: petPath(pet) + "/photos"}
}

func (u *upload) respondJSON() error {
	result := u.v.uploadResult(u.pet)
	_, err := u.v.r.Cookie(doneCookie)
	switch {
	case len(u.sent.Refused) > 0:
		result.Problem = u.sent.Refused[0].Reason
	case err == nil: // of the pet, or another photo
		u.v.say("photos-added")
	default:
		u.v.say("photo-added")
	}
	u.v.writeJSON(result)
	return nil
}

// Summary says how many of the files were added.
func (g gallery) Summary() string {
	files := g.Added
	for _, f := range g.Refused {
		if f.Name != "" {
			files++
		}
	}
	if g.Added == 0 {
		return "Nothing was added."
	}
	return fmt.Sprintf("%d of %d photos added.", g.Added, files)
}

// photoRefusals are what people need to know where the API's message is for programs.
var photoRefusals = map[animalstore.Code]string{
	animalstore.PayloadTooLarge:      "it is larger than " + strconv.Itoa(animalstore.MaxUpload>>20) + " MiB",
	animalstore.UnsupportedMediaType: "it isn’t a JPEG, PNG or WebP picture",
	animalstore.TooManyPhotos:        "the pet has " + strconv.Itoa(animalstore.MaxPhotos) + " photos, the maximum: remove one first",
	animalstore.StorageFull:          "the store has no space left for photos",
	animalstore.Overloaded:           "the server is busy with other pictures: try again in a moment",
	animalstore.IdempotencyKeyReused: "another file with this name was sent before with the same form: choose it again",
	animalstore.RateLimitExceeded:    "your key reached its limit of requests",
	animalstore.DailyQuotaExceeded:   "your key reached its limit of requests",
	animalstore.KeyBanned:            "your key is banned for a while",
}

// photoRefusal says why a photo wasn't added.
func photoRefusal(err error) string {
	if text := photoRefusals[codeOf(err)]; text != "" {
		return sentence(text)
	}
	return refusalText(err)
}

// incompleteError says why a form, or a file in it, couldn't be read to its end.
func incompleteError(what string, err error, timeout time.Duration) error {
	var limit *http.MaxBytesError
	var network interface{ Timeout() bool }
	switch {
	case errors.As(err, &limit):
		return badField("", "the files are larger than "+strconv.Itoa(maxFileBytes>>20)+" MiB together: add fewer at once")
	case errors.As(err, &network) && network.Timeout():
		return badField("", what+" didn’t arrive within "+strconv.Itoa(int(timeout/time.Second))+" seconds: try again with fewer or smaller files")
	}
	return badField("", what+" didn’t arrive completely: try again")
}
