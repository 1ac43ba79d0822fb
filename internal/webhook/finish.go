package webhook

import (
	"context"
	"time"

	"animalstore"
)

// While a webhook has a backlog, its results are collected for pauseFactor times as long
// as it took to store the last ones, or busyFactor times while there are new events, whose
// writers wait for the same disk. It is pauseMost at most. So a backlog leaves most of a
// busy store to others.
const (
	pauseFactor = 2
	busyFactor  = 4
	pauseMost   = 10 * time.Millisecond
)

// finishing is how the results of a webhook's deliveries are being stored. One
// transaction at a time does that, and results that come meanwhile share the next one:
// while there is a backlog, these transactions compete with those of the API.
type finishing struct {
	next *finish // nil if nobody waits
}

// finish stores some results together. The attempt with the first one does it.
type finish struct {
	results []animalstore.DeliveryResult
	begin   chan struct{} // closed when it is its turn
	done    chan struct{} // closed when the deliveries to send next are known
	claimed []animalstore.DueDelivery
}

// finish records a result and returns the next delivery, if any. backlog is whether
// there was more to deliver when this delivery was claimed.
func (w *Worker) finish(r animalstore.DeliveryResult, backlog bool) *animalstore.DueDelivery {
	f, place := w.joinFinish(r)
	if place == 0 {
		<-f.begin
		if backlog {
			w.pause()
		}
		w.takeFinish(f)
		w.store(f)
		close(f.done)
		w.beginFinish(r.Delivery.WebhookID)
	}
	<-f.done
	if place < len(f.claimed) {
		return &f.claimed[place]
	}
	return nil
}

// pause lets other results join, and others use the store.
func (w *Worker) pause() {
	factor := time.Duration(pauseFactor)
	if w.busy.Load() {
		factor = busyFactor
	}
	select {
	case <-time.After(min(factor*time.Duration(w.took.Load()), pauseMost)):
	case <-w.stopping:
	}
}

// joinFinish adds a result to those that are stored next, and returns its place.
func (w *Worker) joinFinish(r animalstore.DeliveryResult) (f *finish, place int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	id := r.Delivery.WebhookID
	under, idle := w.finishing[id], false
	if under == nil {
		under, idle = &finishing{}, true
		w.finishing[id] = under
	}
	if under.next == nil {
		under.next = &finish{begin: make(chan struct{}), done: make(chan struct{})}
	}
	f = under.next
	if idle {
		close(f.begin)
	}
	f.results = append(f.results, r)
	return f, len(f.results) - 1
}

// takeFinish lets nobody else join.
func (w *Worker) takeFinish(f *finish) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.finishing[f.results[0].Delivery.WebhookID].next = nil
}

// beginFinish begins to store what was collected meanwhile.
func (w *Worker) beginFinish(webhookID int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if next := w.finishing[webhookID].next; next != nil {
		close(next.begin)
	} else {
		delete(w.finishing, webhookID)
	}
}

// store stores results, if need be in several attempts.
func (w *Worker) store(f *finish) {
	webhookID := f.results[0].Delivery.WebhookID
	for try := 1; ; try++ {
		next, disabled, err := w.tryStore(f.results)
		if err == nil {
			if disabled != "" {
				w.Observer.WebhookDisabled()
				w.Log.Warn("a webhook was disabled", "webhook", webhookID, "reason", string(disabled))
			}
			f.claimed = next
			return
		}
		if try == finishAttempts || w.stopped() {
			for _, r := range f.results {
				w.Log.Warn("the result of a delivery can't be stored, so it will be repeated", "delivery", r.Delivery.ID, "webhook", webhookID, "err", err)
			}
			return
		}
		select {
		case <-time.After(time.Second):
		case <-w.stopping:
		}
	}
}

func (w *Worker) tryStore(results []animalstore.DeliveryResult) ([]animalstore.DueDelivery, animalstore.Reason, error) {
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	lease := w.lease()
	if w.stopped() {
		lease = animalstore.Time{} // claim nothing
	}
	began := time.Now()
	next, disabled, err := w.Store.FinishDeliveries(ctx, results, animalstore.At(w.now()), lease)
	w.took.Store(int64(time.Since(began)))
	return next, disabled, err
}
