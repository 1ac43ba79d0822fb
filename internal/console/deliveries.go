package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"animalstore"
)

type deliveryPage struct {
	frame
	WebhookID int64
	This      animalstore.Delivery
	Body      string // on several lines
	Once      string
}

// showDelivery serves GET /console/webhooks/{id}/deliveries/{delivery}.
func (v *visit) showDelivery() error {
	webhookID, id, err := v.deliveryIDs()
	if err != nil {
		return err
	}
	delivery, err := v.api.GetDelivery(v.r.Context(), webhookID, id)
	if err != nil {
		return err
	}
	var body bytes.Buffer
	if err := json.Indent(&body, delivery.Body, "", "  "); err != nil {
		return err
	}
	title := fmt.Sprintf("Delivery %d to webhook %d", id, webhookID)
	return v.render(http.StatusOK, "delivery", deliveryPage{v.c.frame(v, title), webhookID, delivery.Delivery, body.String(), newOnce()})
}

// deliveryIDs are the ids in the path.
func (v *visit) deliveryIDs() (webhookID, id int64, err error) {
	if webhookID, err = v.id(); err != nil {
		return 0, 0, err
	}
	id, err = strconv.ParseInt(v.r.PathValue("delivery"), 10, 64)
	if err != nil {
		return 0, 0, errInvalidID
	}
	return webhookID, id, nil
}

// retryDelivery serves POST /console/webhooks/{id}/deliveries/{delivery}/retry.
func (v *visit) retryDelivery() error {
	webhookID, id, err := v.deliveryIDs()
	if err != nil {
		return err
	}
	return v.deliver(webhookID, func() (done string, err error) {
		_, err = v.api.RetryDelivery(v.r.Context(), webhookID, id)
		return "retried", err
	})
}

// retryFailed serves POST /console/webhooks/{id}/deliveries/retry-failed.
func (v *visit) retryFailed() error {
	id, err := v.id()
	if err != nil {
		return err
	}
	return v.retryDeliveries(id, animalstore.DeliveryRetry{State: animalstore.DeliveryFailed})
}

// retrySince serves POST /console/webhooks/{id}/deliveries/retry-since.
func (v *visit) retrySince() error {
	id, err := v.id()
	if err != nil {
		return err
	}
	since, err := parseUTC(v.field("since"))
	if err != nil || since.IsZero() {
		err = badField("since", "the time must be a date and a time")
	} else {
		err = v.retryDeliveries(id, animalstore.DeliveryRetry{Since: since})
	}
	wrong, status, fixable := formProblem(err)
	if !fixable {
		return err
	}
	webhook, etag, err := readTagged(v, v.api.GetWebhook)
	if err != nil {
		return err
	}
	forms := formOfWebhook(webhook, etag).only()
	forms.Since = sinceForm{Since: v.field("since"), Problem: wrong}
	return v.showThisWebhook(status, webhook, forms)
}

// unfinishedError is the error of a form that may have done a part of its work, and does
// the rest when it is sent again.
type unfinishedError struct{ error }

func (e unfinishedError) Unwrap() error { return e.error }

func (v *visit) retryDeliveries(webhookID int64, which animalstore.DeliveryRetry) error {
	return v.deliver(webhookID, func() (done string, err error) {
		n, err := v.api.RetryDeliveries(v.r.Context(), webhookID, which)
		if err != nil {
			err = unfinishedError{err}
		}
		return retriedMany + strconv.Itoa(n), err
	})
}

// deliver has something sent to a webhook, unless the form was sent before.
func (v *visit) deliver(id int64, send func() (done string, err error)) error {
	done := "unchanged"
	err := v.useForm()
	switch {
	case errors.Is(err, errSentTwice):
	case err == nil:
		done, err = send()
		if err != nil {
			return err
		}
	default:
		return err
	}
	return v.goTo(webhookPath(id), done)
}

// retriedMany is before the number of deliveries in what was done.
const retriedMany = "retried-"

// doneText is what a page says was done.
func doneText(done string) string {
	digits, many := strings.CutPrefix(done, retriedMany)
	n, err := strconv.ParseUint(digits, 10, 31)
	switch {
	case !many || err != nil:
		return doneTexts[done]
	case n == 0:
		return "No delivery matches. Nothing is sent."
	case n == 1:
		return doneTexts["retried"]
	}
	return number(int64(n)) + " deliveries are due now. Reload to see their results."
}

// parseUTC reads what an input of the type datetime-local sends; never if it is empty.
func parseUTC(text string) (animalstore.Time, error) {
	if text == "" {
		return animalstore.Time{}, nil
	}
	t, err := time.Parse(utcInput, text)
	if err != nil {
		t, err = time.Parse("2006-01-02T15:04", text)
	}
	return animalstore.At(t), err
}
