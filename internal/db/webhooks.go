package db

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"animalstore"
)

// Webhooks stores webhooks and their deliveries.
//
// DispatchEvents turns events into deliveries: one for each webhook that was active, and
// had selected the type, when the event was added. Its position is stored in the same
// transaction, so every event is turned into deliveries exactly once, even after
// a crash.
//
// A delivery becomes due at a certain time. A worker claims it with a lease before it
// sends it: no other worker may send it before the lease ends.
type Webhooks interface {
	// CreateWebhook adds a webhook that passed Validate, with its secret. It receives
	// the events of later changes. If there already are animalstore.MaxWebhooks, it
	// returns an error with the code too_many_webhooks.
	CreateWebhook(ctx context.Context, w animalstore.NewWebhook, secret string, at animalstore.Time) (animalstore.Webhook, error)

	// Webhook returns one webhook.
	Webhook(ctx context.Context, id int64) (animalstore.Webhook, error)

	// Webhooks returns webhooks in descending order of id.
	Webhooks(ctx context.Context, page Page) ([]animalstore.Webhook, error)

	// UpdateWebhook calls change with a webhook and stores the result. A resumed
	// webhook receives events from before the pause and after the resume, not those
	// between. New types apply to the events of later changes. The times of its last
	// deliveries can't be changed. If DispatchEvents is far behind, it returns an error
	// with the code overloaded.
	UpdateWebhook(ctx context.Context, id int64, change func(*animalstore.Webhook) error) (animalstore.Webhook, error)

	// DeleteWebhook removes a webhook if check returns nil. Its deliveries are no
	// longer sent.
	DeleteWebhook(ctx context.Context, id int64, check func(*animalstore.Webhook) error) error

	// RotateWebhook replaces a webhook's secret if check returns nil. Until the given
	// time, deliveries are also signed with the previous secret, but never with older
	// ones.
	RotateWebhook(ctx context.Context, id int64, secret string, until animalstore.Time, check func(*animalstore.Webhook) error) (animalstore.Webhook, error)

	// PauseWebhooks pauses all active webhooks without adding events, and returns
	// how many.
	PauseWebhooks(ctx context.Context) (paused int, err error)

	// PingWebhook adds a delivery of PingData that is due at once, in any state of
	// the webhook and with any types.
	PingWebhook(ctx context.Context, id int64, eventType animalstore.EventType, at animalstore.Time) (animalstore.Delivery, error)

	// Delivery returns a delivery of a webhook with the body it sends.
	Delivery(ctx context.Context, webhookID, id int64) (animalstore.DeliveryWithBody, error)

	// Deliveries returns deliveries of a webhook in descending order of id. It returns
	// ErrNotFound if the webhook doesn't exist.
	Deliveries(ctx context.Context, webhookID int64, q animalstore.DeliveryQuery, page Page) ([]animalstore.Delivery, error)

	// RetryDelivery makes a delivery of a webhook pending and due at once, from any
	// state. It gets all its attempts again. If it is being sent, it is sent once more
	// after that, even if it succeeds.
	RetryDelivery(ctx context.Context, webhookID, id int64, at animalstore.Time) (animalstore.Delivery, error)

	// RetryDeliveries does the same as RetryDelivery for the newest matching deliveries.
	// Those that are due already keep their place in the order.
	// It examines at most MaxRetried of them and returns how many matched, and the id to
	// continue before, or 0 if there are no more. RetryAll repeats it to the end. It
	// returns ErrNotFound if the webhook doesn't exist.
	RetryDeliveries(ctx context.Context, q RetryQuery, at animalstore.Time) (retried int, next int64, err error)

	// DropDeliveries removes at most max deliveries from before a time and returns how
	// many it removed.
	DropDeliveries(ctx context.Context, before animalstore.Time, max int) (dropped int, err error)

	// WebhookStats summarizes webhooks at a time.
	WebhookStats(ctx context.Context, now animalstore.Time) (WebhookStats, error)

	// WebhookWork returns what the worker has to do at now, with one read.
	WebhookWork(ctx context.Context, now animalstore.Time) (WebhookWork, error)

	// DispatchEvents turns at most max published events into deliveries that are due at
	// once. more reports whether there are more events. It writes nothing if no webhook
	// can get an event, and does nothing while another process is dispatching.
	DispatchEvents(ctx context.Context, at animalstore.Time, max int) (more bool, err error)

	// ClaimDeliveries claims deliveries that are due at now, oldest first, until lease.
	// At most MaxInFlight deliveries of a webhook are claimed at a time, by
	// all workers together. Only active webhooks have due deliveries, except for pings.
	// Deliveries returned with an error are still claimed.
	ClaimDeliveries(ctx context.Context, now, lease animalstore.Time) ([]ClaimedDelivery, error)

	// FinishDelivery stores the result of an attempt and ends the claim. It ignores the
	// result if another worker has claimed the delivery since. If the delivery was
	// retried since, only the attempt is recorded. It updates the webhook, and
	// disables it if the receiver is gone or has failed for DisableAfter:
	// disabled is then the reason. If lease isn't zero, it claims another due delivery to
	// the webhook until then, or returns nil if there is none.
	FinishDelivery(ctx context.Context, r DeliveryResult, now, lease animalstore.Time) (next *ClaimedDelivery, disabled animalstore.OptionalText, err error)

	// ReleaseDelivery ends a claim without an attempt.
	ReleaseDelivery(ctx context.Context, due ClaimedDelivery) error
}

// StoredStates returns the stored values of the states that q selects.
func StoredStates(q animalstore.DeliveryQuery) []int64 {
	if q.State == "" {
		return StoredIndexes(animalstore.DeliveryStates)
	}
	return []int64{StoredIndex(animalstore.DeliveryStates, q.State)}
}

// WebhookStats is a summary of webhooks.
type WebhookStats struct {
	Active, Paused, Disabled int
	OldestDue                animalstore.Time // when the oldest waiting delivery fell due; zero: none is waiting
	Waiting                  int              // deliveries to active webhooks that are pending, at most MaxCounted to each
}

// MaxCounted is how many pending deliveries to a webhook WebhookStats counts: more than
// anyone needs to know exactly, and few enough to count at every scrape.
const MaxCounted = 10_000

// What engines share about webhooks. They store states as their index in
// animalstore.WebhookStates and DeliveryStates, and a type of event as in events, with
// PingIndex for a ping.

// PingIndex is the stored type of an animalstore.WebhookPing.
const PingIndex = -1

// DeliveryTypeIndex is the inverse of [DeliveryType].
func DeliveryTypeIndex(t animalstore.EventType) int64 {
	if t == animalstore.WebhookPing {
		return PingIndex
	}
	return EventTypeIndex(t)
}

// WebhookColumns are read by [ScanWebhook].
const WebhookColumns = "id, url, types, description, state, disabled_reason, created_at, delivered_at, failed_at"

// ScanWebhook scans a webhook.
func ScanWebhook(row Row) (animalstore.Webhook, error) {
	var w animalstore.Webhook
	var state, created, delivered, failed int64
	err := row.Scan(&w.ID, &w.URL, (*string)(&w.Types), &w.Description, &state, (*string)(&w.DisabledReason),
		&created, &delivered, &failed)
	w.State = FromStored(animalstore.WebhookStates, state)
	w.CreatedAt = animalstore.AtMilli(created)
	w.LastDeliveredAt, w.LastFailedAt = animalstore.AtMilli(delivered), animalstore.AtMilli(failed)
	return w, err
}

// DeliveryColumns are read by [ScanDelivery].
const DeliveryColumns = "id, event_id, type, state, due_at, created_at, attempts"

// ScanDelivery scans a delivery.
func ScanDelivery(row Row) (animalstore.Delivery, error) { return scanDelivery(row) }

// ScanDeliveryWithBody scans the columns of a delivery, followed by event_time and data.
func ScanDeliveryWithBody(row Row) (animalstore.DeliveryWithBody, error) {
	var at int64
	var sent ClaimedDelivery
	d, err := scanDelivery(row, &at, (*[]byte)(&sent.Data))
	sent.Type, sent.Time = d.Type, animalstore.AtMilli(at)
	return animalstore.DeliveryWithBody{Delivery: d, Body: sent.Body()}, err
}

func scanDelivery(row Row, more ...any) (animalstore.Delivery, error) {
	var d animalstore.Delivery
	var eventID, eventType, state, due, created int64
	var attempts string
	columns := []any{&d.ID, &eventID, &eventType, &state, &due, &created, &attempts}
	if err := row.Scan(append(columns, more...)...); err != nil {
		return d, err
	}
	d.Type, d.CreatedAt = DeliveryType(eventType), animalstore.AtMilli(created)
	if d.State = FromStored(animalstore.DeliveryStates, state); d.State == "" {
		return d, fmt.Errorf("%w: delivery %d", errDamagedRow, d.ID)
	}
	if eventID != 0 {
		d.EventID = &eventID
	}
	if d.State == animalstore.DeliveryPending {
		d.NextAttemptAt = animalstore.AtMilli(due)
	}
	var err error
	d.Attempts, err = ParseAttempts(attempts)
	return d, err
}

// DeliveryType returns the type of a delivery from its stored value.
func DeliveryType(index int64) animalstore.EventType {
	if index < 0 || index >= int64(len(animalstore.EventTypes)) {
		return animalstore.WebhookPing
	}
	return animalstore.EventTypes[index]
}

// ParseAttempts reads the stored attempts of a delivery.
func ParseAttempts(text string) ([]animalstore.Attempt, error) {
	attempts := []animalstore.Attempt{}
	if err := json.Unmarshal([]byte(text), &attempts); err != nil {
		return nil, fmt.Errorf("read attempts: %w", err)
	}
	return attempts, nil
}

// AddAttempt returns the stored attempts of a delivery after one more. Adding the last
// one again changes nothing.
func AddAttempt(text string, a animalstore.Attempt) (string, error) {
	attempts, err := ParseAttempts(text)
	if err != nil {
		return "", err
	}
	this, err := json.Marshal([]animalstore.Attempt{a})
	if err != nil || strings.HasSuffix(text, string(this[1:])) {
		return text, err
	}
	attempts = append(attempts, a)
	added, err := json.Marshal(attempts[max(0, len(attempts)-animalstore.MaxAttemptsShown):])
	return string(added), err
}

// WebhookHealth is the part of a webhook that deliveries change.
type WebhookHealth struct {
	DeliveredAt, FailedAt int64
	FailingSince          int64 // the first failure since the last success, or 0
}

// healthEvery is the accuracy of the times of a webhook's last deliveries, in
// milliseconds, so that its row isn't written for each of them.
const healthEvery = 1000

// After returns the health after a result, whether it must be stored, and the reason to
// disable the webhook, if any.
func (h WebhookHealth) After(r *DeliveryResult) (after WebhookHealth, changed bool, disable animalstore.OptionalText) {
	at, after := r.Attempt.Time.Milli(), h
	if r.Succeeded() {
		after.DeliveredAt, after.FailingSince = at, 0
		return after, at-h.DeliveredAt >= healthEvery || h.FailingSince != 0, ""
	}
	after.FailedAt = at
	if after.FailingSince == 0 && r.Delivery.EventID != 0 {
		after.FailingSince = at
	}
	switch {
	case r.Gone:
		disable = "the receiver responded with 410 Gone"
	case after.FailingSince != 0 && at-after.FailingSince >= DisableAfter.Milliseconds():
		disable = "no delivery succeeded in five days of attempts"
	}
	return after, disable != "" || at-h.FailedAt >= healthEvery || after.FailingSince != h.FailingSince, disable
}

// Disabled returns a webhook after deliveries that disable it.
func (h WebhookHealth) Disabled(w animalstore.Webhook, reason animalstore.OptionalText) animalstore.Webhook {
	w.LastDeliveredAt, w.LastFailedAt = animalstore.AtMilli(h.DeliveredAt), animalstore.AtMilli(h.FailedAt)
	w.Disable(reason)
	return w
}

// Receiver is a webhook that may get events.
type Receiver struct {
	ID       int64
	Types    []int64 // stored values
	From, To int64   // receives ids after From, up to To unless To is 0
}

// ScanReceiver returns a function that scans the id, types, from_event and to_event of a
// webhook, the position and the newest event.
func ScanReceiver(position, newest *int64) func(Row) (Receiver, error) {
	return func(row Row) (Receiver, error) {
		var r Receiver
		var patterns string
		err := row.Scan(&r.ID, &patterns, &r.From, &r.To, position, newest)
		for _, t := range animalstore.EventPatterns(patterns).Types() {
			r.Types = append(r.Types, EventTypeIndex(t))
		}
		return r, err
	}
}

// DispatchRange returns the ids that a transaction dispatches, the first exclusive,
// given the position and the newest event. It skips events that no receiver gets.
func DispatchRange(receivers []Receiver, position, newest int64, max int) (first, last int64) {
	first = newest
	for _, r := range receivers {
		first = min(first, r.From)
	}
	if first < position {
		first = position
	}
	return first, min(first+int64(max), newest)
}

// EventRange returns the part of DispatchRange that a receiver gets.
func (r *Receiver) EventRange(first, last int64) (from, to int64) {
	from, to = max(first, r.From), last
	if r.To != 0 {
		to = min(to, r.To)
	}
	return from, to
}

// WebhookUpdate says what must be stored when a webhook is changed.
type WebhookUpdate struct {
	// DispatchBacklog: events from before the change must be turned into deliveries in the
	// same transaction, because afterwards nothing records which ones the webhook gets.
	DispatchBacklog bool
	Activated       bool // it is no longer failing
	Deactivated     bool // it receives no events after the newest
	Event           animalstore.EventType
}

// CompareWebhooks returns what to store for a change of a webhook, or false if nothing
// changed.
func CompareWebhooks(before, after animalstore.Webhook) (update WebhookUpdate, changed bool) {
	if before.Settings() == after.Settings() {
		return update, false
	}
	was, is := before.State == animalstore.WebhookActive, after.State == animalstore.WebhookActive
	update = WebhookUpdate{
		DispatchBacklog: before.Types != after.Types || is && !was,
		Activated:       is && !was,
		Deactivated:     was && !is,
		Event:           animalstore.WebhookUpdated,
	}
	if after.State == animalstore.WebhookDisabled && before.State != animalstore.WebhookDisabled {
		update.Event = animalstore.WebhookDisabledEvent
	}
	return update, true
}

// MaxBacklog is the maximum number of events that UpdateWebhook turns into deliveries
// itself. Other writes wait for its transaction.
const MaxBacklog = 10_000

// BacklogReceiver returns the receiver of a webhook if there may be events after position, up to
// newest, that must become deliveries to it.
func BacklogReceiver(receivers []Receiver, webhookID, position, newest int64) (*Receiver, error) {
	for i := range receivers {
		r := &receivers[i]
		from, to := r.EventRange(position, newest)
		switch {
		case r.ID != webhookID || from >= to:
		case to-from > MaxBacklog:
			return nil, animalstore.Errorf(animalstore.Overloaded, "%d events from before this change aren't ready to be sent to the webhook yet: try again in a moment", to-from)
		default:
			return r, nil
		}
	}
	return nil, nil
}

// ErrTooManyWebhooks is the error of CreateWebhook if there are too many.
var ErrTooManyWebhooks = animalstore.Errorf(animalstore.TooManyWebhooks, "there are already %d webhooks, the maximum for a store: remove one first", animalstore.MaxWebhooks)

// Add counts a webhook with a stored state and this many pending deliveries. oldestDue is
// when the oldest of them falls due, or 0 if there is none.
func (s *WebhookStats) Add(state, oldestDue, pending int64, now animalstore.Time) {
	switch FromStored(animalstore.WebhookStates, state) {
	case animalstore.WebhookActive:
		s.Active++
		s.Waiting += int(pending)
		if oldestDue != 0 && oldestDue <= now.Milli() && (s.OldestDue.IsZero() || oldestDue < s.OldestDue.Milli()) {
			s.OldestDue = animalstore.AtMilli(oldestDue)
		}
	case animalstore.WebhookPaused:
		s.Paused++
	default:
		s.Disabled++
	}
}
