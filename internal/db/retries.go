package db

import (
	"context"
	"time"

	"animalstore"
)

const (
	// MaxRetried is how many deliveries a transaction makes due, so that a webhook with
	// very many of them holds up nobody else.
	MaxRetried = 500
	// createdOrder is how far the order of deliveries' creation times can differ from that
	// of their ids: instances have clocks of their own.
	createdOrder = time.Minute
)

// RetryQuery selects deliveries of a webhook.
type RetryQuery struct {
	WebhookID int64
	animalstore.DeliveryRetry
	Before int64 // only lower ids, if it isn't 0
}

// RetryAll makes all deliveries that match due at once, the newest first, and returns how
// many. After an error, some of them are.
func RetryAll(ctx context.Context, d Webhooks, q RetryQuery, at animalstore.Time) (retried int, err error) {
	for {
		n, next, err := d.RetryDeliveries(ctx, q, at)
		retried += n
		if err != nil || next == 0 {
			return retried, err
		}
		q.Before = next
	}
}

// Select returns which of MaxRetried rows, newest first, have to be made due at a time, how
// many others already are, and the id to go on before, or 0 if there are no more. Those that
// are due keep their place among the others.
func (q *RetryQuery) Select(rows []StoredDelivery, at animalstore.Time) (ids []int64, due int, next int64) {
	pending := StoredIndex(animalstore.DeliveryStates, animalstore.DeliveryPending)
	for _, row := range rows {
		switch {
		case row.CreatedAt < q.Since.Milli():
		case row.State == pending && row.DueAt <= at.Milli():
			due++
		default:
			ids = append(ids, row.ID)
		}
	}
	if len(rows) == MaxRetried {
		last := rows[len(rows)-1]
		if last.CreatedAt >= q.Since.Milli()-createdOrder.Milliseconds() {
			next = last.ID
		}
	}
	return ids, due, next
}

// StoredState is the stored value of the state that q selects by, or -1 for all.
func (q *RetryQuery) StoredState() int64 {
	if q.State == "" {
		return -1
	}
	return StoredIndex(animalstore.DeliveryStates, q.State)
}
