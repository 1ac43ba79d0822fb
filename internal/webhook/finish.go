package webhook

import (
	"context"
	"time"

	"animalstore"
)

// finish records a result and returns the webhook's next delivery, if one is due. It tries
// again if the store fails.
func (w *Worker) finish(r animalstore.DeliveryResult) *animalstore.DueDelivery {
	for try := 1; ; try++ {
		next, err := w.tryFinish(r)
		if err == nil {
			return next
		}
		if try == finishAttempts || w.stopped() {
			w.Log.Warn("storing the result of a delivery failed; it is sent again after its lease", "delivery", r.Delivery.ID, "webhook", r.Delivery.WebhookID, "err", err)
			return nil
		}
		select {
		case <-time.After(time.Second):
		case <-w.stopping:
		}
	}
}

func (w *Worker) tryFinish(r animalstore.DeliveryResult) (*animalstore.DueDelivery, error) {
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	lease := w.lease()
	if w.stopped() {
		lease = animalstore.Time{} // claim nothing
	}
	next, disabled, err := w.Store.FinishDelivery(ctx, r, animalstore.At(w.now()), lease)
	if err != nil {
		return nil, err
	}
	if disabled != "" {
		w.Observer.WebhookDisabled()
		w.Log.Warn("a webhook was disabled", "webhook", r.Delivery.WebhookID, "reason", string(disabled))
	}
	return next, nil
}
