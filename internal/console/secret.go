package console

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"animalstore/client"
)

// newSecret is the secret of a key or webhook that was just created or rotated.
type newSecret struct {
	ID      int64
	Secret  string
	Rotated bool
	Grace   int64 // how long the old secret keeps working, in seconds
}

type secretPage struct {
	frame
	newSecret
	Kind string // "key" or "webhook"
}

// showSecret shows the secret that change returns, in this response and nowhere else: the
// form has no effect if it is sent again. wrong is what is wrong with the form. If it can be
// fixed, again shows it.
func (v *visit) showSecret(kind string, wrong error, change func() (newSecret, error), again func(formError) error) error {
	var secret newSecret
	err := wrong
	if err == nil {
		err = v.useForm()
	}
	if err == nil {
		secret, err = change()
	}
	if wrong, ok := formProblem(err); ok {
		return again(wrong)
	}
	if err != nil {
		return err
	}
	title := fmt.Sprintf("Secret of %s %d", kind, secret.ID)
	return v.render(http.StatusOK, "secret", secretPage{v.frame(title), secret, kind})
}

// rotate replaces the secret of the key or webhook in the path by calling change.
func (v *visit) rotate(
	kind string, change func(grace time.Duration) (secret string, err error), again func(rotateForm) error,
) error {
	hours, err := v.integer("graceHours", "the number of hours")
	if err == nil && (hours < 0 || hours > 90*24) {
		err = badField("graceHours", "the old secret can keep working for 0 to 2160 hours")
	}
	return v.showSecret(kind, err, func() (newSecret, error) {
		secret, err := change(time.Duration(hours) * time.Hour)
		return newSecret{v.id, secret, true, hours * 3600}, err
	}, func(wrong formError) error {
		if wrong.Message == "" {
			wrong.Message = "Someone changed it after you opened the page, so it wasn’t rotated. Check it, then decide."
		}
		wrong.Field = "graceHours"
		return again(rotateForm{v.field("graceHours"), newOnce(), wrong})
	})
}

// rotateForm is what the form for a new secret shows.
type rotateForm struct {
	Hours   string
	Once    string
	Problem formError
}

func newRotateForm() rotateForm { return rotateForm{Hours: "24", Once: newOnce()} }

// readTagged reads what the path names, with the ETag that guards changes of it.
func readTagged[T any](v *visit, get func(context.Context, int64, ...client.CallOption) (T, error)) (item T, etag string, err error) {
	var meta client.Meta
	item, err = get(v.r.Context(), v.id, client.ReadMeta(&meta))
	return item, meta.ETag, err
}
