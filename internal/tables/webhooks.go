package tables

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"animalstore"
	"animalstore/internal/terminal"
)

// Webhooks are the columns of webhooks.
var Webhooks = []terminal.Column[animalstore.Webhook]{
	{Title: "ID", Text: func(w animalstore.Webhook) string { return decimal(w.ID) }},
	{Title: "URL", Text: func(w animalstore.Webhook) string { return w.URL }, Shrink: true},
	{Title: "TYPES", Text: func(w animalstore.Webhook) string { return strings.Join(w.Types.List(), ",") }, Drop: 2},
	{Title: "DESCRIPTION", Text: func(w animalstore.Webhook) string { return w.Description }, Drop: 6},
	{Title: "STATE", Text: func(w animalstore.Webhook) string { return string(w.State) }, Colour: webhookColour},
	{Title: "REASON", Text: func(w animalstore.Webhook) string { return orDash(string(w.DisabledReason)) }, Drop: 5},
	{Title: "LAST DELIVERED", Time: func(w animalstore.Webhook) time.Time { return w.LastDeliveredAt.Time }, Relative: true, Drop: 3},
	{Title: "LAST FAILED", Time: func(w animalstore.Webhook) time.Time { return w.LastFailedAt.Time }, Relative: true, Drop: 4},
}

func webhookColour(w animalstore.Webhook) terminal.Colour {
	switch w.State {
	case animalstore.WebhookActive:
		return terminal.Green
	case animalstore.WebhookPaused:
		return terminal.Yellow
	}
	return terminal.Red
}

// WebhookTitle is a webhook in a few words.
func WebhookTitle(w animalstore.Webhook) string { return fmt.Sprintf("%s, %s", w.URL, w.State) }

// Deliveries are the columns of deliveries.
var Deliveries = []terminal.Column[animalstore.Delivery]{
	{Title: "ID", Text: func(d animalstore.Delivery) string { return decimal(d.ID) }},
	{Title: "EVENT", Text: deliveredEvent},
	{Title: "TYPE", Text: func(d animalstore.Delivery) string { return string(d.Type) }},
	{Title: "STATE", Text: func(d animalstore.Delivery) string { return string(d.State) }, Colour: deliveryColour},
	{Title: "ATTEMPTS", Text: func(d animalstore.Delivery) string { return strconv.Itoa(len(d.Attempts)) }, Drop: 2},
	{Title: "LAST RESULT", Text: lastResult, Shrink: true},
	{Title: "NEXT ATTEMPT", Time: func(d animalstore.Delivery) time.Time { return d.NextAttemptAt.Time }, Relative: true, Never: "-", Drop: 1},
	{Title: "CREATED (UTC)", Time: func(d animalstore.Delivery) time.Time { return d.CreatedAt.Time }, Drop: 3},
}

func deliveryColour(d animalstore.Delivery) terminal.Colour {
	switch d.State {
	case animalstore.DeliveryDelivered:
		return terminal.Green
	case animalstore.DeliveryPending:
		return terminal.Yellow
	}
	return terminal.Red
}

func deliveredEvent(d animalstore.Delivery) string {
	if d.EventID == nil {
		return "-" // a ping
	}
	return decimal(*d.EventID)
}

func lastResult(d animalstore.Delivery) string {
	if len(d.Attempts) == 0 {
		return "-"
	}
	return attemptResult(d.Attempts[len(d.Attempts)-1])
}

// attemptResult is the status of the response, or why there was none.
func attemptResult(a animalstore.Attempt) string {
	if a.Status != nil {
		return strconv.Itoa(*a.Status)
	}
	return orDash(string(a.Error))
}

// DeliveryTitle is a delivery in a few words.
func DeliveryTitle(d animalstore.Delivery) string { return fmt.Sprintf("%s, %s", d.Type, d.State) }

// PrintForwarded prints a line about an event that was forwarded to a receiver, with what
// came back.
func PrintForwarded(p *terminal.Printer, e animalstore.Event, a animalstore.Attempt) error {
	line, err := forwardedLine(p, e, a)
	if err == nil {
		_, err = fmt.Fprintln(p.Out, line)
	}
	return err
}

func forwardedLine(p *terminal.Printer, e animalstore.Event, a animalstore.Attempt) (string, error) {
	if p.JSON {
		line, err := json.Marshal(struct {
			EventID int64                 `json:"eventId"`
			Type    animalstore.EventType `json:"type"`
			Subject string                `json:"subject"`
			animalstore.Attempt
		}{e.ID, e.Type, e.Subject, a})
		return string(line), err
	}
	result := attemptResult(a)
	if !p.Screen.Terminal {
		return fmt.Sprintf("%d\t%s\t%s\t%s\t%s\t%d", e.ID, a.Time, e.Type, e.Subject, result, a.DurationMs), nil
	}
	return fmt.Sprintf("%s  %-16s  %-12s  %s  (%d ms)", terminal.DateTime(a.Time.Time), e.Type, e.Subject, result, a.DurationMs), nil
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
