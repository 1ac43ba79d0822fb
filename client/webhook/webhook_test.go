package webhook_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"animalstore/client/webhook"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const (
	secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	other  = "whsec_AAAAr8GKYqrTwjUPD8ILPZIo2LaLaSwAAAA="
	id     = "msg_p5jXN8AQM9LWM0D4loKWxJek"
)

// TestVerifyLikeTheLibrary: what the published library signs is genuine, but not with
// another secret.
func TestVerifyLikeTheLibrary(t *testing.T) {
	for n := range 100 {
		body := []byte(strings.Repeat(fmt.Sprintf(`{"n":%d}`, n), n))
		w, err := standardwebhooks.NewWebhook(secret)
		if err != nil {
			t.Fatal(err)
		}
		now := time.Now()
		signature, err := w.Sign(id, now, body)
		if err != nil {
			t.Fatal(err)
		}
		h := http.Header{}
		h.Set(webhook.HeaderID, id)
		h.Set(webhook.HeaderTimestamp, fmt.Sprint(now.Unix()))
		h.Set(webhook.HeaderSignature, signature)
		if err := webhook.Verify(secret, h, body); err != nil {
			t.Errorf("%q: %v", body, err)
		}
		if err := webhook.Verify(other, h, body); !errors.Is(err, webhook.ErrNoMatch) {
			t.Errorf("%q with another secret: got %v, want ErrNoMatch", body, err)
		}
	}
}

func ExampleVerify() {
	http.HandleFunc("POST /hook", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil {
			return
		}
		if err := webhook.Verify("whsec_…", r.Header, body); err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
}
