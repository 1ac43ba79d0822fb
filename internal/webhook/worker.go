// Package webhook delivers events to webhooks: it claims what is due, signs and sends it
// to addresses that are allowed, and records the outcome.
package webhook

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"animalstore"
	"animalstore/internal/db"
)

// Store is where webhooks and deliveries are stored. Package db has the contract of each
// method.
type Store interface {
	WebhookWork(ctx context.Context, now animalstore.Time) (db.WebhookWork, error)
	DispatchEvents(ctx context.Context, at animalstore.Time, max int) (more bool, err error)
	ClaimDeliveries(ctx context.Context, now, lease animalstore.Time) ([]db.ClaimedDelivery, error)
	FinishDelivery(ctx context.Context, r db.DeliveryResult, now, lease animalstore.Time) (next *db.ClaimedDelivery, disabled animalstore.OptionalText, err error)
	ReleaseDelivery(ctx context.Context, due db.ClaimedDelivery) error
}

// Observer is notified of attempts and disabled webhooks. Its methods must not block.
type Observer interface {
	// WebhookAttempt is called after each attempt. outcome is delivered, retry or
	// failed.
	WebhookAttempt(outcome string)
	// WebhookDisabled is called when the service disables a webhook.
	WebhookDisabled()
}

const (
	// pollEvery is the longest time between two polls for new events and due deliveries.
	pollEvery = 500 * time.Millisecond
	// minPollInterval is the minimum time between two polls. Many events share one.
	minPollInterval = 20 * time.Millisecond
	// leaseTime is how long a claim lasts: an attempt, and some time to record its result. If
	// a process is killed, another takes over within 20 seconds.
	leaseTime = db.AttemptTimeout + 3*time.Second
	// claimTimeout is when a worker stops claiming and sends what it has, because an attempt
	// begins only if it ends before its lease.
	claimTimeout = 2 * time.Second
	// dispatchBatch is how many events become deliveries in one transaction.
	dispatchBatch = 500
	// storeTimeout limits a poll, and any other operation on the store.
	storeTimeout = 5 * time.Second
	// finishAttempts is how often a worker tries to record a result, a second apart.
	finishAttempts = 10
)

// Config configures a [Worker].
type Config struct {
	Store    Store
	Sender   *Sender
	Observer Observer
	Log      *slog.Logger
	Now      func() time.Time // nil: time.Now
	// SharedClock corrects Now by the clock of the store, if it has one, so that the
	// leases of one process mean the same to another whose clock differs.
	SharedClock bool
	// Grace is how long attempts may continue after Run's context has ended. Unfinished
	// deliveries are then released, to be sent again.
	Grace time.Duration
}

// Worker delivers. Any number of them can share a store.
type Worker struct {
	Config
	wake     chan struct{}
	attempts sync.WaitGroup
	unstored atomic.Bool  // the last result of a delivery couldn't be stored
	offset   atomic.Int64 // nanoseconds by which the store's clock is ahead
	failing  bool         // the store failed at the last poll; Run alone uses it
}

// NewWorker returns a worker. It makes c.Sender use the worker's clock.
func NewWorker(c Config) *Worker {
	if c.Now == nil {
		c.Now = time.Now
	}
	w := &Worker{Config: c, wake: make(chan struct{}, 1)}
	w.Sender.now = w.now
	return w
}

// now is the time that deliveries are due by.
func (w *Worker) now() time.Time { return w.Now().Add(time.Duration(w.offset.Load())) }

// Notify makes the worker poll soon, because there may be new events. It never blocks.
func (w *Worker) Notify() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Run delivers until ctx ends. It then starts no attempt and waits for those in progress.
// After Grace it cancels them and waits until their deliveries are released.
func (w *Worker) Run(ctx context.Context) {
	sending, stopSending := context.WithCancel(context.WithoutCancel(ctx))
	defer stopSending()
	for ctx.Err() == nil {
		due := time.After(w.poll(ctx, sending))
		time.Sleep(minPollInterval)
		select {
		case <-ctx.Done():
		case <-w.wake:
		case <-due:
		}
	}
	grace := time.AfterFunc(w.Grace, stopSending)
	defer grace.Stop()
	w.attempts.Wait()
	w.Sender.Close()
}

// poll turns new events into deliveries and starts those that are due. It returns how
// long to wait until the next poll.
func (w *Worker) poll(ctx, sending context.Context) time.Duration {
	next, err := w.work(ctx, sending)
	if err != nil && ctx.Err() == nil && !w.failing {
		w.Log.Warn("cannot deliver webhook events: storage error; retrying", "err", err)
	}
	w.failing = err != nil
	if err != nil || next.IsZero() {
		return pollEvery
	}
	return min(max(0, next.Sub(w.now())), pollEvery)
}

// work dispatches new events and claims due deliveries. next is when more falls due; zero if
// that isn't known.
func (w *Worker) work(ctx, sending context.Context) (next animalstore.Time, err error) {
	limited, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	asked := w.Now()
	work, err := w.Store.WebhookWork(limited, animalstore.At(w.now()))
	if err != nil {
		return next, err
	}
	if w.SharedClock && !work.Clock.IsZero() {
		w.followClock(work.Clock, asked, w.Now())
	}
	if work.Events {
		more, err := w.Store.DispatchEvents(limited, animalstore.At(w.now()), dispatchBatch)
		if err != nil {
			return next, err
		}
		if more { // deliveries that exist already don't wait for the rest
			w.Notify()
		}
	}
	if !work.Due && !work.Events {
		return work.Next, nil
	}
	claiming, cancel := context.WithTimeout(limited, claimTimeout)
	defer cancel()
	due, err := w.Store.ClaimDeliveries(claiming, animalstore.At(w.now()), w.lease())
	for _, d := range due { // even if only some could be claimed before an error
		w.attempts.Go(func() { w.deliver(ctx, sending, &d) })
	}
	return work.Next, err
}

// followClock corrects the worker's clock by the store's, which was read at some time
// between asked and answered. So it can be wrong by half of that interval, and the store
// rounds to milliseconds. Smaller differences are ignored, because following them would
// distort the durations of attempts in progress.
func (w *Worker) followClock(clock animalstore.Time, asked, answered time.Time) {
	half := answered.Sub(asked) / 2
	offset := clock.Sub(asked.Add(half))
	if change := offset - time.Duration(w.offset.Load()); change.Abs() > half+time.Millisecond {
		w.offset.Store(int64(offset))
	}
}

func (w *Worker) lease() animalstore.Time { return animalstore.At(w.now().Add(leaseTime)) }

// deliver sends a delivery, and then others of the same webhook while there are any. It
// begins no attempt after ctx has ended, nor one that could outlast its lease.
func (w *Worker) deliver(ctx, sending context.Context, d *db.ClaimedDelivery) {
	for d != nil {
		if ctx.Err() != nil || d.Lease.Before(w.now().Add(db.AttemptTimeout)) {
			w.release(d)
			return
		}
		r := w.Sender.Attempt(sending, d)
		if sending.Err() != nil && !r.Succeeded() {
			w.release(d) // it didn't fail: we gave up
			return
		}
		w.observe(r)
		d = w.finish(ctx, r)
	}
}

func (w *Worker) observe(r db.DeliveryResult) {
	outcome := string(r.State)
	if r.State == animalstore.DeliveryPending {
		outcome = "retry"
	}
	w.Observer.WebhookAttempt(outcome)
}

// finish records a result and returns the webhook's next delivery, if one is due. It
// retries if the store fails. If the lease ends, the delivery may be sent again, and this
// result is then ignored.
func (w *Worker) finish(ctx context.Context, r db.DeliveryResult) *db.ClaimedDelivery {
	for try := 1; ; try++ {
		next, err := w.tryFinish(ctx, r)
		if err == nil {
			w.unstored.Store(false)
			return next
		}
		if try == finishAttempts || ctx.Err() != nil {
			if !w.unstored.Swap(true) { // otherwise a full disk would fill the log
				w.Log.Warn("storing results of deliveries fails: they are sent again after their leases", "delivery", r.Delivery.ID, "webhook", r.Delivery.WebhookID, "err", err)
			}
			return nil
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
}

func (w *Worker) tryFinish(ctx context.Context, r db.DeliveryResult) (*db.ClaimedDelivery, error) {
	lease := w.lease()
	if ctx.Err() != nil {
		lease = animalstore.Time{} // claim nothing
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	next, disabled, err := w.Store.FinishDelivery(limited, r, animalstore.At(w.now()), lease)
	if err != nil {
		return nil, err
	}
	if disabled != "" {
		w.Observer.WebhookDisabled()
		w.Log.Warn("a webhook was disabled", "webhook", r.Delivery.WebhookID, "reason", string(disabled))
	}
	return next, nil
}

func (w *Worker) release(d *db.ClaimedDelivery) {
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	if err := w.Store.ReleaseDelivery(ctx, *d); err != nil {
		w.Log.Warn("releasing a delivery failed; it is retried after its lease", "delivery", d.ID, "err", err)
	}
}
