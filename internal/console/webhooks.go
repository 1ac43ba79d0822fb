package console

import (
	"cmp"
	"context"
	"iter"
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
	formState
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
	return v.showWebhooks(webhookForm{Types: animalstore.DefaultEventPatterns.List()})
}

func (v *visit) showWebhooks(form webhookForm) error {
	webhooks, err := readPage(v, v.api.ListWebhooks, pageSize)
	if err != nil {
		return err
	}
	form.Once = newOnce()
	return v.render(form.Problem.status(), "webhooks", webhooksPage{v.frame("Webhooks"), webhooks, form})
}

func (v *visit) sentWebhook() webhookForm {
	return webhookForm{
		URL: strings.TrimSpace(v.field("url")), Types: v.r.PostForm["types"],
		Description: v.field("description"), formState: v.sentState(),
	}
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
	return v.showSecret("webhook", err, func() (newSecret, error) {
		in := animalstore.NewWebhook{URL: form.URL, Types: types, Description: form.Description}
		created, err := v.api.CreateWebhook(v.r.Context(), in)
		return newSecret{ID: created.ID, Secret: created.Secret}, err
	}, func(wrong formError) error {
		form.Problem = wrong
		return v.showWebhooks(form)
	})
}

func webhookPath(id int64) string { return "/console/webhooks/" + strconv.FormatInt(id, 10) }

type webhookPage struct {
	frame
	This         animalstore.Webhook
	Form         webhookForm
	Rotate       rotateForm
	Since        string // of the form to send everything since a time again
	SinceProblem formError
	Once         string // of the other forms, with what tells them apart
	Deliveries   page[animalstore.Delivery]
	State        animalstore.DeliveryState // of the deliveries that are shown
	history                                // what was changed
}

// States are those of deliveries.
func (webhookPage) States() []animalstore.DeliveryState { return animalstore.DeliveryStates }

// PingTypes are the types of test events.
func (webhookPage) PingTypes() []animalstore.EventType {
	return append([]animalstore.EventType{animalstore.WebhookPing}, animalstore.EventTypes...)
}

// showWebhook serves GET /console/webhooks/{id}.
func (v *visit) showWebhook() error { return v.showWebhookWith(func(*webhookPage) {}) }

// showWebhookWith shows a webhook. change puts an error next to its field.
func (v *visit) showWebhookWith(change func(*webhookPage)) error {
	p, err := v.readWebhook()
	if err != nil {
		return err
	}
	change(&p)
	return v.renderWebhook(p)
}

func (v *visit) readWebhook() (p webhookPage, err error) {
	webhook, etag, err := readTagged(v, v.api.GetWebhook)
	if err != nil {
		return p, err
	}
	p = webhookPage{
		This:   webhook,
		Form:   webhookForm{URL: webhook.URL, Types: webhook.Types.List(), Description: webhook.Description},
		Rotate: newRotateForm(), Once: newOnce(),
		State: animalstore.DeliveryState(v.r.URL.Query().Get("state")),
	}
	p.Form.ETag = etag
	deliveries := func(ctx context.Context, options ...client.CallOption) iter.Seq2[animalstore.Delivery, error] {
		return v.api.ListDeliveries(ctx, webhook.ID, animalstore.DeliveryQuery{State: p.State}, options...)
	}
	p.Deliveries, err = readPage(v, deliveries, pageSize)
	if err == nil {
		p.history, err = v.readHistory("webhook", webhook.ID)
	}
	return p, err
}

func (v *visit) renderWebhook(p webhookPage) error {
	p.frame = v.frame("Webhook " + strconv.FormatInt(p.This.ID, 10))
	wrong := cmp.Or(p.Form.Problem, p.Rotate.Problem, p.SinceProblem)
	return v.render(wrong.status(), "webhook", p)
}

// changeWebhook serves POST /console/webhooks/{id}. A form with a state changes only that.
func (v *visit) changeWebhook() error {
	if state := animalstore.WebhookState(v.field("state")); state != "" {
		patch := animalstore.WebhookPatch{State: &state}
		_, err := v.api.UpdateWebhook(v.r.Context(), v.id, patch, client.IfMatch("*")) // even if something else was changed
		if err != nil {
			return err
		}
		return v.goTo(webhookPath(v.id), "saved")
	}
	form := v.sentWebhook()
	types, err := form.patterns()
	if err == nil {
		patch := animalstore.WebhookPatch{URL: &form.URL, Types: &types, Description: &form.Description}
		_, err = v.api.UpdateWebhook(v.r.Context(), v.id, patch, v.ifMatch())
	}
	return v.finish(err, webhookPath(v.id), "saved", func(wrong formError) error {
		p, err := v.readWebhook()
		if err != nil {
			return err
		}
		theirs := p.This
		if !form.refuse(wrong, p.Form.ETag, conflict{"URL", form.URL, theirs.URL},
			conflict{"Types", string(types), string(theirs.Types)},
			conflict{"Description", form.Description, theirs.Description}) {
			return v.goTo(webhookPath(v.id), "unchanged")
		}
		p.Form = form
		return v.renderWebhook(p)
	})
}

// pingWebhook serves POST /console/webhooks/{id}/ping.
func (v *visit) pingWebhook() error {
	return v.deliver(func() (done string, err error) {
		event := cmp.Or(animalstore.EventType(v.field("type")), animalstore.WebhookPing)
		_, err = v.api.PingWebhookAs(v.r.Context(), v.id, event)
		return "pinged", err
	})
}

// rotateWebhook serves POST /console/webhooks/{id}/rotate.
func (v *visit) rotateWebhook() error {
	return v.rotate("webhook", func(grace time.Duration) (string, error) {
		webhook, err := v.api.RotateWebhook(v.r.Context(), v.id, grace, v.ifMatch())
		return webhook.Secret, err
	}, func(form rotateForm) error {
		return v.showWebhookWith(func(p *webhookPage) { p.Rotate = form })
	})
}

// removeWebhook serves POST /console/webhooks/{id}/remove.
func (v *visit) removeWebhook() error {
	if err := v.api.DeleteWebhook(v.r.Context(), v.id); err != nil && codeOf(err) != animalstore.WebhookNotFound {
		return err
	}
	return v.goTo("/console/webhooks", "removed")
}
