package console

import (
	"cmp"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"animalstore"
	"animalstore/client"
)

type webhooksPage struct {
	frame
	page[animalstore.Webhook]
	Form webhookForm
}

// webhookForm is what the form of a webhook shows.
type webhookForm struct {
	URL, Description string
	Types            []string // patterns
	Problem          formError
	Once, ETag       string
	Conflicts        []conflict
}

// typeGroup is the choice of events about a kind of resource.
type typeGroup struct {
	Resource string
	Choices  []typeChoice // all of them first
}

type typeChoice struct {
	Pattern, Title string
	Chosen         bool
}

// TypeGroups are the types of events to choose from.
func (f webhookForm) TypeGroups() (groups []typeGroup) {
	choice := func(pattern, title string) typeChoice {
		return typeChoice{pattern, title, slices.Contains(f.Types, pattern)}
	}
	for _, t := range animalstore.EventTypes {
		i := slices.IndexFunc(groups, func(g typeGroup) bool { return g.Resource == t.Resource() })
		if i < 0 {
			i = len(groups)
			groups = append(groups, typeGroup{t.Resource(), []typeChoice{choice(t.Resource()+".*", "all")}})
		}
		groups[i].Choices = append(groups[i].Choices, choice(string(t), strings.TrimPrefix(string(t), t.Resource()+".")))
	}
	return groups
}

// failing reports whether the last attempt to deliver to a webhook failed. One that is
// disabled says why itself.
func failing(w animalstore.Webhook) bool {
	return w.State != animalstore.WebhookDisabled && w.LastFailedAt.After(w.LastDeliveredAt.Time)
}

// listWebhooks serves GET /console/webhooks.
func (v *visit) listWebhooks() error {
	return v.showWebhooks(http.StatusOK, webhookForm{Types: animalstore.DefaultEventPatterns.List()})
}

func (v *visit) showWebhooks(status int, form webhookForm) error {
	webhooks, err := readPage(v, func(options ...client.CallOption) iter.Seq2[animalstore.Webhook, error] {
		return v.api.ListWebhooks(v.r.Context(), client.PageQuery{PageSize: pageSize}, options...)
	})
	if err != nil {
		return err
	}
	form.Once = newOnce()
	return v.render(status, "webhooks", webhooksPage{v.c.frame(v, "Webhooks"), webhooks, form})
}

func (v *visit) sentWebhook() webhookForm {
	return webhookForm{URL: strings.TrimSpace(v.field("url")), Types: v.r.PostForm["types"], Description: v.field("description"), ETag: v.field("etag")}
}

// patterns are the types that were chosen, without those that another choice includes.
func (f webhookForm) patterns() (animalstore.EventPatterns, error) {
	if len(f.Types) == 0 { // the API would take its default
		return "", badField("types", "choose at least one type of event")
	}
	chosen := slices.DeleteFunc(slices.Clone(f.Types), func(pattern string) bool {
		all := animalstore.EventType(pattern).Resource() + ".*"
		return pattern != all && slices.Contains(f.Types, all)
	})
	return animalstore.EventPatterns(strings.Join(chosen, ",")), nil
}

// createWebhook serves POST /console/webhooks.
func (v *visit) createWebhook() error {
	form := v.sentWebhook()
	types, err := form.patterns()
	if err == nil {
		err = v.useForm()
	}
	var created client.WebhookWithSecret
	if err == nil {
		created, err = v.api.CreateWebhook(v.r.Context(), animalstore.NewWebhook{URL: form.URL, Types: types, Description: form.Description})
	}
	if message, status, ok := formProblem(err); ok {
		form.Problem = message
		return v.showWebhooks(status, form)
	}
	if err != nil {
		return err
	}
	return v.showSecret("webhook", created.ID, newSecret{Secret: created.Secret})
}

func webhookPath(id int64) string { return "/console/webhooks/" + strconv.FormatInt(id, 10) }

type webhookPage struct {
	frame
	This animalstore.Webhook
	webhookForms
	Deliveries page[animalstore.Delivery]
	State      string // of the deliveries that are shown
	States     []string
	history    // what was changed
}

// webhookForms are what the forms of the page show.
type webhookForms struct {
	Form       webhookForm
	Rotate     rotateForm
	Since      sinceForm
	PingOnce   string
	FailedOnce string
	RetryOnce  string // with the delivery's id
}

// sinceForm is the form to send everything since a time again.
type sinceForm struct {
	Since, Once string
	Problem     formError
}

func (f webhookForm) only() webhookForms { return webhookForms{Form: f, Rotate: newRotateForm()} }

// PingTypes are the types of test events.
func (webhookPage) PingTypes() []animalstore.EventType {
	return append([]animalstore.EventType{animalstore.WebhookPing}, animalstore.EventTypes...)
}

// showWebhook serves GET /console/webhooks/{id}.
func (v *visit) showWebhook() error {
	webhook, etag, err := readTagged(v, v.api.GetWebhook)
	if err != nil {
		return err
	}
	return v.showThisWebhook(http.StatusOK, webhook, formOfWebhook(webhook, etag).only())
}

func formOfWebhook(w animalstore.Webhook, etag string) webhookForm {
	return webhookForm{URL: w.URL, Types: w.Types.List(), Description: w.Description, ETag: etag}
}

func (v *visit) showThisWebhook(status int, webhook animalstore.Webhook, forms webhookForms) error {
	state := v.r.URL.Query().Get("state")
	deliveries, err := readPage(v, func(options ...client.CallOption) iter.Seq2[animalstore.Delivery, error] {
		return v.api.ListDeliveries(v.r.Context(), webhook.ID, client.DeliveryQuery{State: animalstore.DeliveryState(state), PageSize: pageSize}, options...)
	})
	if err != nil {
		return err
	}
	var past history
	if v.may(eventsRead) {
		if past, err = v.readHistory(client.EventsOptions{Subject: animalstore.EventSubject("webhook", webhook.ID)}); err != nil {
			return err
		}
	}
	forms.PingOnce, forms.FailedOnce, forms.Since.Once, forms.RetryOnce = newOnce(), newOnce(), newOnce(), newOnce()
	return v.render(status, "webhook", webhookPage{
		v.c.frame(v, "Webhook "+strconv.FormatInt(webhook.ID, 10)), webhook, forms, deliveries, state, []string{"pending", "delivered", "failed"}, past,
	})
}

// changeWebhook serves POST /console/webhooks/{id}. A form with a state changes only that.
func (v *visit) changeWebhook() error {
	id, err := v.id()
	if err != nil {
		return err
	}
	form := v.sentWebhook()
	types, err := form.patterns()
	patch := animalstore.WebhookPatch{URL: &form.URL, Types: &types, Description: &form.Description}
	option := v.ifMatch()
	if state := animalstore.WebhookState(v.field("state")); state != "" {
		err, patch, option = nil, animalstore.WebhookPatch{State: &state}, client.IfMatch("*") // even if something else was changed
	}
	if err == nil {
		_, err = v.api.UpdateWebhook(v.r.Context(), id, patch, option)
	}
	if err == nil {
		return v.goTo(webhookPath(id), "saved")
	}
	message, status, fixable := formProblem(err)
	if !fixable && !isStale(err) || patch.State != nil {
		return err
	}
	webhook, etag, err := readTagged(v, v.api.GetWebhook)
	if err != nil {
		return err
	}
	if fixable {
		form.Problem = message
		return v.showThisWebhook(status, webhook, form.only())
	}
	theirs := formOfWebhook(webhook, etag)
	form.Conflicts = conflicts(conflict{"URL", form.URL, theirs.URL}, conflict{"Types", string(types), string(webhook.Types)}, conflict{"Description", form.Description, theirs.Description})
	if form.Conflicts == nil {
		return v.goTo(webhookPath(id), "unchanged")
	}
	form.ETag = etag
	return v.showThisWebhook(http.StatusPreconditionFailed, webhook, form.only())
}

// pingWebhook serves POST /console/webhooks/{id}/ping.
func (v *visit) pingWebhook() error {
	id, err := v.id()
	if err != nil {
		return err
	}
	return v.deliver(id, func() (done string, err error) {
		_, err = v.api.PingWebhookAs(v.r.Context(), id, cmp.Or(animalstore.EventType(v.field("type")), animalstore.WebhookPing))
		return "pinged", err
	})
}

// rotateWebhook serves POST /console/webhooks/{id}/rotate.
func (v *visit) rotateWebhook() error {
	return v.rotate("webhook", func(id int64, grace time.Duration) (string, error) {
		webhook, err := v.api.RotateWebhook(v.r.Context(), id, grace, v.ifMatch())
		return webhook.Secret, err
	}, func(status int, wrong formError) error {
		webhook, etag, err := readTagged(v, v.api.GetWebhook)
		if err != nil {
			return err
		}
		return v.showThisWebhook(status, webhook, webhookForms{Form: formOfWebhook(webhook, etag), Rotate: rotateForm{v.field("graceHours"), newOnce(), wrong}})
	})
}

// removeWebhook serves POST /console/webhooks/{id}/remove.
func (v *visit) removeWebhook() error {
	id, err := v.id()
	if err != nil {
		return err
	}
	if err := v.api.DeleteWebhook(v.r.Context(), id); err != nil && codeOf(err) != animalstore.WebhookNotFound {
		return err
	}
	return v.goTo("/console/webhooks", "removed")
}
