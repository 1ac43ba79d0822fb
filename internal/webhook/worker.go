// Package webhook delivers events to webhooks: it claims what is due, signs and sends it
// to addresses that are allowed, and records what came of it.
package webhook

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"animalstore"
)

// Store is where webhooks and deliveries are stored. Package db has the contract of each
// method.
type Store interface {
	DispatchEvents(ctx context.Context, at animalstore.Time, max int) (more bool, err error)
	ClaimDeliveries(ctx context.Context, now, lease animalstore.Time) ([]animalstore.DueDelivery, error)
	FinishDelivery(ctx context.Context, r animalstore.DeliveryResult, now, lease animalstore.Time) (next *animalstore.DueDelivery, disabled animalstore.Reason, err error)
	ReleaseDeliveries(ctx context.Context, due []animalstore.DueDelivery) error
}

// Observer is told what happens. Its methods must not block.
type Observer interface {
	// WebhookAttempt is called after each attempt. outcome is delivered, retry or
	// failed.
	WebhookAttempt(outcome string)
	// WebhookDisabled is called when the service disables a webhook.
	WebhookDisabled()
}

const (
	// lookEvery is how often a worker looks for events and for what is due.
	lookEvery = 250 * time.Millisecond
	// leaseTime is how long nobody else sends a delivery that was claimed. It is longer
	// than an attempt and what it takes to record it.
	leaseTime = 4 * animalstore.AttemptTimeout
	// dispatchBatch is how many events become deliveries in one transaction.
	dispatchBatch = 500
	// storeTimeout bounds one operation of the store.
	storeTimeout = 5 * time.Second
	// finishAttempts is how often a worker tries to record a result, a second apart.
	// After that the delivery is sent again when its lease ends.
	finishAttempts = 10
)

// Config configures a [Worker].
type Config struct {
	Store    Store
	Sender   *Sender
	Observer Observer
	Log      *slog.Logger
	Now      func() time.Time // nil: time.Now
	// Grace is how long attempts may go on after Run's context has ended. What isn't
	// done by then is given back, to be sent again.
	Grace time.Duration
}

// Worker delivers. Any number of them can share a store.
type Worker struct {
	Config
	wake     chan struct{}
	stopping chan struct{} // closed when no delivery may begin any more
	attempts sync.WaitGroup
	failing  bool // the store failed the last time; used by Run alone
}

// NewWorker returns a worker.
func NewWorker(c Config) *Worker {
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Worker{Config: c, wake: make(chan struct{}, 1), stopping: make(chan struct{})}
}

// Notify makes the worker look at once, because there may be new events.
func (w *Worker) Notify() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Run delivers until ctx ends. It then begins nothing new and returns when the attempts
// under way have ended, or after Grace.
func (w *Worker) Run(ctx context.Context) {
	sending, stopSending := context.WithCancel(context.WithoutCancel(ctx))
	defer stopSending()
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for ctx.Err() == nil {
		w.look(ctx, sending)
		select {
		case <-ctx.Done():
		case <-w.wake:
		case <-ticker.C:
		}
	}
	close(w.stopping)
	timer := time.AfterFunc(w.Grace, stopSending)
	defer timer.Stop()
	w.attempts.Wait()
	w.Sender.Close()
}

// look turns new events into deliveries and starts those that are due.
func (w *Worker) look(ctx, sending context.Context) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	err := w.dispatch(ctx)
	if err == nil {
		err = w.claim(ctx, sending)
	}
	if err != nil && ctx.Err() == nil && !w.failing {
		w.Log.Warn("webhooks can't be delivered, because the storage failed; trying again", "err", err)
	}
	w.failing = err != nil
}

func (w *Worker) dispatch(ctx context.Context) error {
	for {
		more, err := w.Store.DispatchEvents(ctx, animalstore.At(w.Now()), dispatchBatch)
		if err != nil || !more {
			return err
		}
	}
}

func (w *Worker) claim(ctx, sending context.Context) error {
	due, err := w.Store.ClaimDeliveries(ctx, animalstore.At(w.Now()), w.lease())
	if err != nil {
		return err
	}
	for _, d := range due {
		w.attempts.Go(func() { w.deliver(sending, &d) })
	}
	return nil
}

func (w *Worker) lease() animalstore.Time { return animalstore.At(w.Now().Add(leaseTime)) }

// deliver sends a delivery, and then others of the same webhook while there are any.
func (w *Worker) deliver(ctx context.Context, d *animalstore.DueDelivery) {
	for d != nil {
		if w.stopped() {
			w.release(d)
			return
		}
		r := w.Sender.Attempt(ctx, d)
		if ctx.Err() != nil && !r.Succeeded() {
			w.release(d) // it didn't fail: we gave up
			return
		}
		w.observe(r)
		d = w.finish(r)
	}
}

func (w *Worker) stopped() bool {
	select {
	case <-w.stopping:
		return true
	default:
		return false
	}
}

func (w *Worker) observe(r animalstore.DeliveryResult) {
	outcome := string(r.State)
	if r.State == animalstore.DeliveryPending {
		outcome = "retry"
	}
	w.Observer.WebhookAttempt(outcome)
}

// finish records a result and returns the next delivery, if any.
func (w *Worker) finish(r animalstore.DeliveryResult) *animalstore.DueDelivery {
	for try := 1; ; try++ {
		next, disabled, err := w.tryFinish(r)
		if err == nil {
			if disabled != "" {
				w.Observer.WebhookDisabled()
				w.Log.Warn("a webhook was disabled", "webhook", r.Delivery.WebhookID, "reason", string(disabled))
			}
			return next
		}
		if try == finishAttempts || w.stopped() {
			w.Log.Warn("the result of a delivery can't be stored, so it will be repeated", "delivery", r.Delivery.ID, "webhook", r.Delivery.WebhookID, "err", err)
			return nil
		}
		select {
		case <-time.After(time.Second):
		case <-w.stopping:
		}
	}
}

func (w *Worker) tryFinish(r animalstore.DeliveryResult) (*animalstore.DueDelivery, animalstore.Reason, error) {
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	lease := w.lease()
	if w.stopped() {
		lease = animalstore.Time{} // claim nothing
	}
	return w.Store.FinishDelivery(ctx, r, animalstore.At(w.Now()), lease)
}

func (w *Worker) release(d *animalstore.DueDelivery) {
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	if err := w.Store.ReleaseDeliveries(ctx, []animalstore.DueDelivery{*d}); err != nil {
		w.Log.Warn("a delivery can't be given back, so it waits until its lease ends", "delivery", d.ID, "err", err)
	}
}
