package console

import (
	"context"
	"errors"
	"net/http"
	"time"

	"animalstore/client"
)

type secretPage struct {
	frame
	Heading string
	Name    string // whose secret it is
	List    string // the page it belongs to
	Path    string // of the page about it
	Secret  string
	Rotated bool
	Grace   int64 // how long the old secret keeps working, in seconds
}

// showSecret shows a secret, this once.
func (v *visit) showSecret(p secretPage) error {
	p.frame = v.c.frame(v, p.Heading)
	return v.render(http.StatusOK, "secret", p)
}

// rotate gives what the path names a new secret with change, and shows it. A form that is
// sent twice rotates once.
func (v *visit) rotate(change func(id int64, grace time.Duration) (secretPage, error)) error {
	id, err := v.id()
	if err != nil {
		return err
	}
	hours, err := v.graceHours()
	if err == nil {
		err = v.useForm()
	}
	if errors.Is(err, errSentTwice) {
		return v.showSentTwice()
	}
	if err != nil {
		return err
	}
	page, err := change(id, time.Duration(hours)*time.Hour)
	if err != nil {
		return err
	}
	page.Rotated, page.Grace = true, hours*3600
	return v.showSecret(page)
}

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
	id, err := v.id()
	if err != nil {
		return item, "", err
	}
	var meta client.Meta
	item, err = get(v.r.Context(), id, client.ReadMeta(&meta))
	return item, meta.ETag, err
}
