package db

import (
	"context"
	"time"

	"animalstore"
)

const (
	// MaxRetried is how many deliveries a transaction makes due at most, so that a
	// webhook with very many of them doesn't delay others.
	MaxRetried = 500
	// createdOrder is how far the creation times of deliveries can be out of order
	// compared with their ids, because each instance has its own clock.
	createdOrder = time.Minute
)

// RetryQuery selects deliveries of a webhook.
type RetryQuery struct {
	WebhookID int64
	animalstore.DeliveryRetry
	Before int64 // only lower ids, if it isn't 0
}

// RetryAll makes all matching deliveries due at once, newest first, and returns how many
// there were. After an error, those that it counted are due, and before is where to
// continue.
func RetryAll(ctx context.Context, d Webhooks, q RetryQuery, at animalstore.Time) (retried int, before int64, err error) {
	for {
		n, next, err := d.RetryDeliveries(ctx, q, at)
		if err != nil {
			return retried, q.Before, err
		}
		retried += n
		if next == 0 {
			return retried, 0, nil
		}
		q.Before = next
	}
}

// Select returns which of MaxRetried deliveries, newest first, are retried, and the id to
// continue before, or 0 if there are no more.
func (q *RetryQuery) Select(examined []animalstore.Delivery) (ids []int64, next int64) {
	for _, d := range examined {
		if d.CreatedAt.Milli() >= q.Since.Milli() {
			ids = append(ids, d.ID)
		}
	}
	if len(examined) == MaxRetried {
		last := examined[len(examined)-1]
		if last.CreatedAt.Milli() >= q.Since.Milli()-createdOrder.Milliseconds() {
			next = last.ID
		}
	}
	return ids, next
}

// StoredState is the stored value of the state that q selects by, or -1 for all.
func (q *RetryQuery) StoredState() int64 {
	if q.State == "" {
		return -1
	}
	return StoredIndex(animalstore.DeliveryStates, q.State)
}
