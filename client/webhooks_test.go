package client_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"animalstore"
	"animalstore/client"
)

// TestRetryOfVeryMany: a call that needs several requests continues until all deliveries
// are due. If it gives up before that, some of them are.
func TestRetryOfVeryMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := animalstore.DeliveryRetry{State: animalstore.DeliveryFailed}
		unfinished := apiError(503, animalstore.Unavailable, "Retry-After", "1")
		c, s := scriptedClient(t, []reply{unfinished, unfinished, response(202, `{"deliveries":1200}`)})
		if n, err := c.RetryDeliveries(t.Context(), 1, failed); err != nil || n != 1200 || len(s.sent) != 3 {
			t.Errorf("got %d, %v after %d requests, want 1200 after 3", n, err, len(s.sent))
		}
		for _, last := range []reply{unfinished, apiError(503, animalstore.StorageFull, "Retry-After", "1")} {
			c, _ = scriptedClient(t, []reply{last})
			if n, err := c.RetryDeliveries(t.Context(), 1, failed); !errors.Is(err, client.ErrOutcomeUnknown) {
				t.Errorf("got %d, %v, want ErrOutcomeUnknown", n, err)
			}
		}
	})
}
