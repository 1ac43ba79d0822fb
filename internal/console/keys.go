package console

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"animalstore"
	"animalstore/client"
)

type keysPage struct {
	frame
	page[animalstore.Key]
	Now time.Time
}

// listKeys serves GET /console/keys.
func (v *visit) listKeys() error {
	keys, err := readPage(v, v.api.ListKeys, pageSize)
	if err != nil {
		return err
	}
	return v.render(http.StatusOK, "keys", keysPage{v.frame("Keys"), keys, v.c.Now()})
}

// utcInput is how an input of the type datetime-local writes a time.
const utcInput = "2006-01-02T15:04:05"

// keyForm is what the form of a key shows.
type keyForm struct {
	Name, Plan, PerMinute, PerDay, Expires string
	ExpiresWas                             string // to tell whether it was changed
	Permissions                            []string
	Networks                               string // separated by spaces or commas
	formState
}

// Plans are the plans to choose from.
func (keyForm) Plans() []animalstore.Plan { return animalstore.Plans }

// Groups are the permissions to choose from.
func (keyForm) Groups() []permissionGroup { return permissionGroups }

// Presets are the choices of permissions for a purpose.
func (keyForm) Presets() []preset { return presets }

// Has reports whether a permission is ticked.
func (f keyForm) Has(permission string) bool { return slices.Contains(f.Permissions, permission) }

func formOf(key animalstore.Key, etag string) keyForm {
	f := keyForm{
		Name: key.Name, Plan: string(key.Plan), Permissions: key.Permissions.Names(),
		Networks: strings.Join(key.Networks.List(), ", "), formState: formState{ETag: etag},
	}
	if key.Plan == animalstore.PlanEnterprise {
		f.PerMinute, f.PerDay = strconv.FormatInt(key.Limits.PerMinute, 10), strconv.FormatInt(key.Limits.PerDay, 10)
	}
	if !key.ExpiresAt.IsZero() {
		f.Expires = key.ExpiresAt.UTC().Format(utcInput)
	}
	f.ExpiresWas = f.Expires
	return f
}

func (v *visit) sentKey() keyForm {
	return keyForm{
		Name: v.field("name"), Plan: v.field("plan"), PerMinute: v.field("perMinute"), PerDay: v.field("perDay"),
		Expires: v.field("expires"), ExpiresWas: v.field("expiresWas"), Permissions: v.r.PostForm["permission"],
		Networks: v.field("networks"), formState: v.sentState(),
	}
}

// limits reads the limits of an enterprise key. For other plans they are zero.
func (f keyForm) limits() (l animalstore.Limits, err error) {
	if l.PerMinute, err = f.limit("perMinute", f.PerMinute); err == nil {
		l.PerDay, err = f.limit("perDay", f.PerDay)
	}
	return l, err
}

func (f keyForm) limit(field, text string) (int64, error) {
	isEnterprise := animalstore.Plan(f.Plan) == animalstore.PlanEnterprise
	if !isEnterprise && text == "" {
		return 0, nil
	}
	n, err := parseInteger(text)
	switch {
	case !isEnterprise:
		return 0, badField(field, "only the enterprise plan can have its own limits: clear these fields, or choose enterprise")
	case err != nil || n < 1:
		return 0, badField(field, "the enterprise plan needs both limits, as positive whole numbers")
	}
	return n, nil
}

func (f keyForm) expires() (animalstore.Time, error) {
	expires, err := parseUTC(f.Expires)
	if err != nil {
		return animalstore.Time{}, badField("expires", "the expiry must be a date and a time")
	}
	return expires, nil
}

func (f keyForm) networks() animalstore.Networks {
	return animalstore.Networks(strings.Join(strings.FieldsFunc(f.Networks, func(c rune) bool { return c == ',' || unicode.IsSpace(c) }), ","))
}

func (f keyForm) permissions() animalstore.Permissions {
	var all animalstore.Permissions
	for _, name := range f.Permissions {
		p, _ := animalstore.ParsePermission(name)
		all |= p
	}
	return all
}

type newKeyPage struct {
	frame
	Form keyForm
}

// newKey serves GET /console/keys/new.
func (v *visit) newKey() error {
	if err := v.chargeAddress(); err != nil { // no call charges this page to the key
		return err
	}
	form := keyForm{Plan: string(animalstore.PlanFree), Permissions: []string{"read", "write"}}
	for _, p := range presets {
		if p.Name == v.r.URL.Query().Get("for") {
			form.Name, form.Permissions = p.Title, p.Permissions.Names()
		}
	}
	return v.showNewKey(form)
}

func (v *visit) showNewKey(form keyForm) error {
	form.Once = newOnce()
	return v.render(form.Problem.status(), "key-new", newKeyPage{v.frame("Create a key"), form})
}

// createKey serves POST /console/keys.
func (v *visit) createKey() error {
	form := v.sentKey()
	key, err := form.newKey()
	return v.showSecret("key", err, func() (newSecret, error) {
		created, err := v.api.CreateKey(v.r.Context(), key)
		return newSecret{ID: created.ID, Secret: created.Secret}, err
	}, func(wrong formError) error {
		form.Problem = wrong
		return v.showNewKey(form)
	})
}

func (f keyForm) newKey() (client.NewKey, error) {
	k := client.NewKey{Name: f.Name, Plan: animalstore.Plan(f.Plan), Permissions: f.permissions(), Networks: f.networks()}
	var err error
	if k.Limits, err = f.limits(); err != nil {
		return k, err
	}
	if k.ExpiresAt, err = f.expires(); err != nil {
		return k, err
	}
	if k.Permissions == 0 { // the API would take its default
		return k, badField("permission", "choose at least one permission")
	}
	return k, nil
}

func keyPath(id int64) string { return "/console/keys/" + strconv.FormatInt(id, 10) }

type keyPage struct {
	frame
	This    animalstore.Key
	State   string
	Own     bool // the key that is signed in
	Form    keyForm
	Rotate  rotateForm
	Revoke  formError
	Suspend formError
	Periods []period
	Period  period
	Plot    plot
	history
}

// showKey serves GET /console/keys/{id}.
func (v *visit) showKey() error {
	p, err := v.readKey()
	if err != nil {
		return err
	}
	return v.renderKey(p)
}

func (v *visit) readKey() (p keyPage, err error) {
	key, etag, err := readTagged(v, v.api.GetKey)
	if err != nil {
		return p, err
	}
	p = keyPage{
		This: key, State: key.State(v.c.Now()), Own: key.ID == v.key.ID,
		Form: formOf(key, etag), Rotate: newRotateForm(),
	}
	if p.history, err = v.readHistory("key", key.ID); err != nil {
		return p, err
	}
	p.Periods, p.Period = periods, v.findPeriod()
	usage, err := v.api.GetKeyUsage(v.r.Context(), key.ID, p.Period.hours)
	p.Plot = v.c.plotUsage(usage, p.Period)
	return p, err
}

func (v *visit) renderKey(p keyPage) error {
	p.frame = v.frame("Key " + strconv.FormatInt(p.This.ID, 10))
	wrong := cmp.Or(p.Form.Problem, p.Rotate.Problem, p.Revoke, p.Suspend)
	return v.render(wrong.status(), "key", p)
}

// showKeyAgain shows a key after a form on its page was refused. change puts the error next
// to its field. A revoked key has no forms.
func (v *visit) showKeyAgain(wrong formError, change func(*keyPage)) error {
	p, err := v.readKey()
	switch {
	case err != nil:
		return err
	case !p.This.RevokedAt.IsZero():
		return problem{Status: wrong.Status, Heading: titles[wrong.Status], Message: wrong.Message}
	}
	change(&p)
	return v.renderKey(p)
}

// changeKey serves POST /console/keys/{id}.
func (v *visit) changeKey() error {
	form := v.sentKey()
	patch, err := form.patch()
	if err == nil {
		_, err = v.api.UpdateKey(v.r.Context(), v.id, patch, v.ifMatch())
	}
	return v.finish(err, v.r.URL.Path, "saved", func(wrong formError) error {
		p, err := v.readKey()
		if err != nil {
			return err
		}
		theirs := p.Form
		if !form.refuse(wrong, theirs.ETag,
			conflict{"Name", form.Name, theirs.Name}, conflict{"Plan", form.Plan, theirs.Plan},
			conflict{"Per minute", form.PerMinute, theirs.PerMinute}, conflict{"Per day", form.PerDay, theirs.PerDay},
			conflict{"Permissions", form.permissions().String(), strings.Join(theirs.Permissions, ",")},
			conflict{"Networks", string(form.networks()), string(p.This.Networks)},
			conflict{"Expires (UTC)", form.Expires, theirs.Expires}) {
			return v.goTo(v.r.URL.Path, "unchanged")
		}
		if form.Conflicts != nil {
			form.ExpiresWas = theirs.Expires
		}
		p.Form = form
		return v.renderKey(p)
	})
}

// patch is the change that the form asks for. The expiry is left alone unless it was
// edited: the input has no fractions of a second.
func (f keyForm) patch() (animalstore.KeyPatch, error) {
	plan, permissions, networks := animalstore.Plan(f.Plan), f.permissions(), f.networks()
	p := animalstore.KeyPatch{Name: &f.Name, Plan: &plan, Permissions: &permissions, Networks: &networks}
	limits, err := f.limits()
	if err != nil {
		return p, err
	}
	if plan == animalstore.PlanEnterprise {
		p.Limits = &limits
	}
	if f.Expires == f.ExpiresWas {
		return p, nil
	}
	expires, err := f.expires()
	p.ExpiresAt = &expires
	return p, err
}

// rotateKey serves POST /console/keys/{id}/rotate.
func (v *visit) rotateKey() error {
	return v.rotate("key", func(grace time.Duration) (string, error) {
		key, err := v.api.RotateKey(v.r.Context(), v.id, grace, v.ifMatch())
		return key.Secret, err
	}, func(form rotateForm) error {
		return v.showKeyAgain(form.Problem, func(p *keyPage) { p.Rotate = form })
	})
}

// unbanKey serves POST /console/keys/{id}/unban.
func (v *visit) unbanKey() error {
	var meta client.Meta
	if _, err := v.api.UnbanKey(v.r.Context(), v.id, client.ReadMeta(&meta)); err != nil {
		return err
	}
	done := "no-ban"
	if meta.BanLifted {
		done = "unbanned"
	}
	return v.goTo(keyPath(v.id), done)
}

// suspendKey serves POST /console/keys/{id}/suspend.
func (v *visit) suspendKey() error { return v.setSuspended(true, "suspended") }

// resumeKey serves POST /console/keys/{id}/resume.
func (v *visit) resumeKey() error { return v.setSuspended(false, "resumed") }

// setSuspended suspends or resumes the key in the path, even if other fields were changed since.
func (v *visit) setSuspended(suspended bool, done string) error {
	_, err := v.api.UpdateKey(v.r.Context(), v.id, animalstore.KeyPatch{Suspended: &suspended}, client.IfMatch("*"))
	return v.finish(err, keyPath(v.id), done, func(wrong formError) error {
		return v.showKeyAgain(wrong, func(p *keyPage) { p.Suspend = wrong })
	})
}

// revokeKey serves POST /console/keys/{id}/revoke.
func (v *visit) revokeKey() error {
	err := badField("confirm", "tick the box to confirm that this key will never work again; nothing was changed")
	if v.field("confirm") == "yes" {
		err = v.api.RevokeKey(v.r.Context(), v.id)
	}
	return v.finish(err, keyPath(v.id), "revoked", func(wrong formError) error {
		return v.showKeyAgain(wrong, func(p *keyPage) { p.Revoke = wrong })
	})
}
