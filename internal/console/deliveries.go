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
	id, err := v.pathID("delivery")
	if err != nil {
		return err
	}
	delivery, err := v.api.GetDelivery(v.r.Context(), v.id, id)
	if err != nil {
		return err
	}
	var body bytes.Buffer
	if err := json.Indent(&body, delivery.Body, "", "  "); err != nil {
		return err
	}
	title := fmt.Sprintf("Delivery %d to webhook %d", id, v.id)
	return v.render(http.StatusOK, "delivery", deliveryPage{v.frame(title), v.id, delivery.Delivery, body.String(), newOnce()})
}

// retryDelivery serves POST /console/webhooks/{id}/deliveries/{delivery}/retry.
func (v *visit) retryDelivery() error {
	id, err := v.pathID("delivery")
	if err != nil {
		return err
	}
	return v.deliver(func() (done string, err error) {
		_, err = v.api.RetryDelivery(v.r.Context(), v.id, id)
		return "retried", err
	})
}

// retryFailed serves POST /console/webhooks/{id}/deliveries/retry-failed.
func (v *visit) retryFailed() error {
	return v.retryDeliveries(animalstore.DeliveryRetry{State: animalstore.DeliveryFailed})
}

// retrySince serves POST /console/webhooks/{id}/deliveries/retry-since.
func (v *visit) retrySince() error {
	since, err := parseUTC(v.field("since"))
	if err != nil || since.IsZero() {
		err = badField("since", "the time must be a date and a time")
	} else {
		err = v.retryDeliveries(animalstore.DeliveryRetry{Since: since})
	}
	if wrong, ok := formProblem(err); ok {
		return v.showWebhookWith(func(p *webhookPage) { p.Since, p.SinceProblem = v.field("since"), wrong })
	}
	return err
}

// unfinishedError is the error of a form that may have done a part of its work, and does
// the rest when it is sent again.
type unfinishedError struct{ error }

func (e unfinishedError) Unwrap() error { return e.error }

func (v *visit) retryDeliveries(which animalstore.DeliveryRetry) error {
	return v.deliver(func() (done string, err error) {
		n, err := v.api.RetryDeliveries(v.r.Context(), v.id, which)
		if err != nil {
			err = unfinishedError{err}
		}
		return retriedMany + strconv.Itoa(n), err
	})
}

// deliver has something sent to the webhook in the path, unless the form was sent before.
func (v *visit) deliver(send func() (done string, err error)) error {
	done := "unchanged"
	err := v.useForm()
	if err == nil {
		done, err = send()
	}
	if err != nil && !errors.Is(err, errSentTwice) {
		return err
	}
	return v.goTo(webhookPath(v.id), done)
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
