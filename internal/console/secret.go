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
	Secret  string
	Rotated bool
	Grace   int64 // how long the old secret keeps working, in seconds
}

type secretPage struct {
	frame
	newSecret
	Kind string // "key" or "webhook"
	ID   int64
}

// showSecret shows a secret in the response to the form that asked for it, and nowhere else:
// the form has no effect if it is sent again.
func (v *visit) showSecret(kind string, id int64, secret newSecret) error {
	title := fmt.Sprintf("Secret of %s %d", kind, id)
	return v.render(http.StatusOK, "secret", secretPage{v.frame(title), secret, kind, id})
}

// rotate replaces the secret of the key or webhook in the path by calling change, and
// shows the new one. If the form is invalid, again shows it with the error. A form that
// is sent twice rotates once.
func (v *visit) rotate(kind string, change func(grace time.Duration) (secret string, err error), again func(rotateForm) error) error {
	hours, err := v.graceHours()
	if err == nil {
		err = v.useForm()
	}
	var secret string
	if err == nil {
		secret, err = change(time.Duration(hours) * time.Hour)
	}
	if wrong, ok := formProblem(err); ok {
		if wrong.Message == "" {
			wrong.Message = "Someone changed it after you opened the page, so it wasn’t rotated. Check it, then decide."
		}
		wrong.Field = "graceHours"
		return again(rotateForm{v.field("graceHours"), newOnce(), wrong})
	}
	if err != nil {
		return err
	}
	return v.showSecret(kind, v.id, newSecret{secret, true, hours * 3600})
}

// rotateForm is what the form for a new secret shows.
type rotateForm struct {
	Hours   string
	Once    string
	Problem formError
}

func newRotateForm() rotateForm { return rotateForm{Hours: "24", Once: newOnce()} }

// graceHours is how long the secret before a rotation keeps working.
func (v *visit) graceHours() (int64, error) {
	hours, err := v.integer("graceHours", "the number of hours")
	if err == nil && (hours < 0 || hours > 90*24) {
		err = badField("graceHours", "the old secret can keep working for 0 to 2160 hours")
	}
	return hours, err
}

// readTagged reads what the path names, with the ETag that guards changes of it.
func readTagged[T any](v *visit, get func(context.Context, int64, ...client.CallOption) (T, error)) (item T, etag string, err error) {
	var meta client.Meta
	item, err = get(v.r.Context(), v.id, client.ReadMeta(&meta))
	return item, meta.ETag, err
}
