package console

import (
	"iter"
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
	keys, err := readPage(v, func(options ...client.CallOption) iter.Seq2[animalstore.Key, error] {
		return v.api.ListKeys(v.r.Context(), client.PageQuery{PageSize: pageSize}, options...)
	})
	if err != nil {
		return err
	}
	return v.render(http.StatusOK, "keys", keysPage{v.c.frame(v, "Keys"), keys, v.c.Now()})
}

// utcInput is how an input of the type datetime-local writes a time.
const utcInput = "2006-01-02T15:04:05"

// keyForm is what the form of a key shows.
type keyForm struct {
	Name, Plan, PerMinute, PerDay, Expires string
	ExpiresWas                             string // to tell whether it was changed
	Permissions                            []string
	Networks                               string // separated by spaces or commas
	Plans                                  []animalstore.Plan
	Problem                                formError
	Once, ETag                             string
	Conflicts                              []conflict
}

// Groups are the permissions to choose from.
func (keyForm) Groups() []permissionGroup { return permissionGroups }

// Presets are the choices of permissions for a purpose.
func (keyForm) Presets() []preset { return presets }

// Has reports whether a permission is ticked.
func (f keyForm) Has(permission string) bool { return slices.Contains(f.Permissions, permission) }

func formOf(key animalstore.Key, etag string) keyForm {
	f := keyForm{Name: key.Name, Plan: string(key.Plan), Permissions: key.Permissions.Names(), Networks: strings.Join(key.Networks.List(), ", "), ETag: etag}
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
		Networks: v.field("networks"), ETag: v.field("etag"),
	}
}

// limits reads the limits of an enterprise key. Other plans have their own, so limits that
// were typed are a mistake.
func (f keyForm) limits() (l animalstore.Limits, err error) {
	if plan := animalstore.Plan(f.Plan); plan != animalstore.PlanEnterprise {
		field := "perMinute"
		if f.PerMinute == "" {
			field = "perDay"
		}
		fixed, err := plan.LimitsFor(l)
		if err == nil && f.PerMinute+f.PerDay != "" {
			err = badField(field, "the "+f.Plan+" plan has its own limits, "+number(fixed.PerMinute)+" a minute and "+number(fixed.PerDay)+" a day: clear these fields, or choose enterprise")
		}
		return l, err
	}
	var err1, err2 error
	l.PerMinute, err1 = parseInteger(f.PerMinute)
	l.PerDay, err2 = parseInteger(f.PerDay)
	switch {
	case err1 != nil || l.PerMinute < 1:
		return l, badField("perMinute", "the enterprise plan needs both limits, as positive whole numbers")
	case err2 != nil || l.PerDay < 1:
		return l, badField("perDay", "the enterprise plan needs both limits, as positive whole numbers")
	}
	return l, nil
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
	if !v.c.chargeAddress(v.w, v.r) { // no call charges this page to the key
		return nil
	}
	form := keyForm{Plan: string(animalstore.PlanFree), Permissions: []string{"read", "write"}}
	for _, p := range presets {
		if p.Name == v.r.URL.Query().Get("for") {
			form.Name, form.Permissions = p.Title, p.Permissions.Names()
		}
	}
	return v.showNewKey(http.StatusOK, form)
}

func (v *visit) showNewKey(status int, form keyForm) error {
	form.Plans, form.Once = animalstore.Plans, newOnce()
	return v.render(status, "key-new", newKeyPage{v.c.frame(v, "Create a key"), form})
}

// createKey serves POST /console/keys.
func (v *visit) createKey() error {
	form := v.sentKey()
	key, err := form.newKey()
	if err == nil {
		err = v.useForm()
	}
	var created client.KeyWithSecret
	if err == nil {
		created, err = v.api.CreateKey(v.r.Context(), key)
	}
	if message, status, ok := formProblem(err); ok {
		form.Problem = message
		return v.showNewKey(status, form)
	}
	if err != nil {
		return err
	}
	return v.showSecret("key", created.ID, newSecret{Secret: created.Secret})
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
	key, etag, err := readTagged(v, v.api.GetKey)
	if err != nil {
		return err
	}
	p := keyPage{This: key, Form: formOf(key, etag), Rotate: newRotateForm()}
	if v.may(eventsRead) {
		if p.history, err = v.readHistory(client.EventsOptions{Subject: animalstore.EventSubject("key", key.ID)}); err != nil {
			return err
		}
	}
	return v.showThisKey(http.StatusOK, p)
}

func (v *visit) showThisKey(status int, p keyPage) error {
	over := v.findPeriod()
	usage, err := v.api.GetKeyUsage(v.r.Context(), p.This.ID, over.hours)
	if err != nil {
		return err
	}
	p.frame, p.State, p.Own = v.c.frame(v, "Key "+strconv.FormatInt(p.This.ID, 10)), p.This.State(v.c.Now()), p.This.ID == v.key.ID
	p.Form.Plans, p.Periods, p.Period, p.Plot = animalstore.Plans, periods, over, v.c.plotUsage(usage, over)
	return v.render(status, "key", p)
}

// showKeyAgain shows a key after the form to rotate or revoke it was refused. change puts
// the error next to its field. A revoked key has no such forms.
func (v *visit) showKeyAgain(status int, wrong formError, change func(*keyPage)) error {
	key, etag, err := readTagged(v, v.api.GetKey)
	if err != nil {
		return err
	}
	if !key.RevokedAt.IsZero() {
		v.show(problem{Status: status, Heading: titles[status], Message: wrong.Message})
		return nil
	}
	p := keyPage{This: key, Form: formOf(key, etag), Rotate: newRotateForm()}
	change(&p)
	return v.showThisKey(status, p)
}

// changeKey serves POST /console/keys/{id}.
func (v *visit) changeKey() error {
	id, err := v.id()
	if err != nil {
		return err
	}
	form := v.sentKey()
	patch, err := form.patch()
	if err == nil {
		_, err = v.api.UpdateKey(v.r.Context(), id, patch, v.ifMatch())
	}
	if err == nil {
		return v.goTo(v.r.URL.Path, "saved")
	}
	message, status, fixable := formProblem(err)
	if !fixable && !isStale(err) {
		return err
	}
	key, etag, err := readTagged(v, v.api.GetKey)
	if err != nil {
		return err
	}
	if fixable {
		form.Problem = message
		return v.showThisKey(status, keyPage{This: key, Form: form, Rotate: newRotateForm()})
	}
	theirs := formOf(key, etag)
	form.Conflicts = conflicts(
		conflict{"Name", form.Name, theirs.Name}, conflict{"Plan", form.Plan, theirs.Plan},
		conflict{"Per minute", form.PerMinute, theirs.PerMinute}, conflict{"Per day", form.PerDay, theirs.PerDay},
		conflict{"Permissions", form.permissions().String(), strings.Join(theirs.Permissions, ",")},
		conflict{"Networks", string(form.networks()), string(key.Networks)},
		conflict{"Expires (UTC)", form.Expires, theirs.Expires})
	if form.Conflicts == nil {
		return v.goTo(v.r.URL.Path, "unchanged")
	}
	form.ETag, form.ExpiresWas = etag, theirs.Expires
	return v.showThisKey(http.StatusPreconditionFailed, keyPage{This: key, Form: form, Rotate: newRotateForm()})
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
	return v.rotate("key", func(id int64, grace time.Duration) (string, error) {
		key, err := v.api.RotateKey(v.r.Context(), id, grace, v.ifMatch())
		return key.Secret, err
	}, func(status int, wrong formError) error {
		return v.showKeyAgain(status, wrong, func(p *keyPage) { p.Rotate.Hours, p.Rotate.Problem = v.field("graceHours"), wrong })
	})
}

// unbanKey serves POST /console/keys/{id}/unban.
func (v *visit) unbanKey() error {
	id, err := v.id()
	if err != nil {
		return err
	}
	var meta client.Meta
	if _, err := v.api.UnbanKey(v.r.Context(), id, client.ReadMeta(&meta)); err != nil {
		return err
	}
	done := "no-ban"
	if meta.BanLifted {
		done = "unbanned"
	}
	return v.goTo(keyPath(id), done)
}

// suspendKey serves POST /console/keys/{id}/suspend.
func (v *visit) suspendKey() error { return v.setSuspended(true, "suspended") }

// resumeKey serves POST /console/keys/{id}/resume.
func (v *visit) resumeKey() error { return v.setSuspended(false, "resumed") }

// setSuspended suspends or resumes the key in the path, even if other fields were changed since.
func (v *visit) setSuspended(suspended bool, done string) error {
	id, err := v.id()
	if err != nil {
		return err
	}
	_, err = v.api.UpdateKey(v.r.Context(), id, animalstore.KeyPatch{Suspended: &suspended}, client.IfMatch("*"))
	if wrong, status, ok := formProblem(err); ok {
		return v.showKeyAgain(status, wrong, func(p *keyPage) { p.Suspend = wrong })
	}
	if err != nil {
		return err
	}
	return v.goTo(keyPath(id), done)
}

// revokeKey serves POST /console/keys/{id}/revoke.
func (v *visit) revokeKey() error {
	id, err := v.id()
	if err != nil {
		return err
	}
	if v.field("confirm") == "yes" {
		err = v.api.RevokeKey(v.r.Context(), id)
	} else {
		err = badField("confirm", "tick the box to confirm that this key will never work again; nothing was changed")
	}
	if wrong, status, ok := formProblem(err); ok {
		return v.showKeyAgain(status, wrong, func(p *keyPage) { p.Revoke = wrong })
	}
	if err != nil {
		return err
	}
	return v.goTo(keyPath(id), "revoked")
}
