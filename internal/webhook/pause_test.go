package webhook

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"animalstore"
)

// TestPauseFollowsSending: with a backlog, the pause before results are stored is longer
// if it took longer to send, because then the processors have other things to do. Only a
// receiver's own time must not stretch it.
func TestPauseFollowsSending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stored time.Time
		s := &fakeStore{finish: func([]animalstore.DeliveryResult) ([]animalstore.DueDelivery, animalstore.Reason, error) {
			stored = time.Now()
			return nil, "", nil
		}}
		w := NewWorker(Config{Store: s, Sender: NewSender(SenderConfig{Networks: NewNetworks(nil)}), Log: slog.New(slog.DiscardHandler)})
		for _, test := range []struct{ sending, storing, want time.Duration }{
			{0, 0, 0},
			{time.Millisecond, 0, pauseFactor * time.Millisecond},
			{time.Millisecond, 2 * time.Millisecond, pauseFactor * 3 * time.Millisecond},
			{10 * time.Second, time.Millisecond, pauseMost},
			{1 << 62, time.Millisecond, pauseMost},
		} {
			w.took.Store(int64(test.storing))
			began := time.Now()
			w.finish(animalstore.DeliveryResult{Delivery: &animalstore.DueDelivery{ID: 1, WebhookID: 1}, Took: test.sending}, true)
			if got := stored.Sub(began); got != test.want {
				t.Errorf("sent in %v and stored in %v: stored after %v, want %v", test.sending, test.storing, got, test.want)
			}
		}
	})
}
