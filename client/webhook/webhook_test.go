package webhook_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"animalstore/client/webhook"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// The test vector of the Standard Webhooks libraries.
const (
	secret    = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	id        = "msg_p5jXN8AQM9LWM0D4loKWxJek"
	timestamp = 1614265330
	body      = `{"test": 2432232314}`
	signature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
)

const other = "whsec_AAAAr8GKYqrTwjUPD8ILPZIo2LaLaSwAAAA="

func headers(id, timestamp, signature string) http.Header {
	h := http.Header{}
	for name, value := range map[string]string{"webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signature} {
		if value != "" {
			h.Set(name, value)
		}
	}
	return h
}

func TestVerifier(t *testing.T) {
	at := strconv.Itoa(timestamp)
	genuine := headers(id, at, signature)
	wrong := "v1,Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc="
	for _, test := range []struct {
		name    string
		secrets string
		header  http.Header
		body    string
		late    time.Duration // how late the receiver's clock is
		want    error
	}{
		{"genuine", secret, genuine, body, 0, nil},
		{"a secret without its prefix", strings.TrimPrefix(secret, "whsec_"), genuine, body, 0, nil},
		{"the second of two secrets", other + " " + secret, genuine, body, 0, nil},
		{"another secret", other, genuine, body, 0, webhook.ErrNoMatch},
		{"the last of several signatures", secret, headers(id, at, wrong+" v2,x v1a,y "+signature), body, 0, nil},
		{"a signature twice", secret, headers(id, at, signature+" "+signature), body, 0, nil},
		{"a wrong signature", secret, headers(id, at, wrong), body, 0, webhook.ErrNoMatch},
		{"an empty signature", secret, headers(id, at, "v1,"), body, 0, webhook.ErrNoMatch},
		{"no version", secret, headers(id, at, strings.TrimPrefix(signature, "v1,")), body, 0, webhook.ErrNoMatch},
		{"another version", secret, headers(id, at, strings.Replace(signature, "v1,", "v2,", 1)), body, 0, webhook.ErrNoMatch},
		{"a part of the signature", secret, headers(id, at, signature[:len(signature)-4]), body, 0, webhook.ErrNoMatch},
		{"another body", secret, genuine, body + " ", 0, webhook.ErrNoMatch},
		{"no body", secret, genuine, "", 0, webhook.ErrNoMatch},
		{"another id", secret, headers(id+"x", at, signature), body, 0, webhook.ErrNoMatch},
		{"another timestamp", secret, headers(id, strconv.Itoa(timestamp+1), signature), body, 0, webhook.ErrNoMatch},
		{"part of the id in the timestamp", secret, headers(id[:5], id[5:]+"."+at, signature), body, 0, webhook.ErrInvalidHeader},
		{"5 minutes late", secret, genuine, body, 5 * time.Minute, nil},
		{"later", secret, genuine, body, 5*time.Minute + time.Second, webhook.ErrTooOld},
		{"5 minutes early", secret, genuine, body, -5 * time.Minute, nil},
		{"earlier", secret, genuine, body, -5*time.Minute - time.Second, webhook.ErrTooNew},
		{"no id", secret, headers("", at, signature), body, 0, webhook.ErrMissingHeader},
		{"no timestamp", secret, headers(id, "", signature), body, 0, webhook.ErrMissingHeader},
		{"no signature", secret, headers(id, at, ""), body, 0, webhook.ErrMissingHeader},
		{"a timestamp that isn't a number", secret, headers(id, "today", signature), body, 0, webhook.ErrInvalidHeader},
		{"a timestamp that doesn't fit", secret, headers(id, "99999999999999999999", signature), body, 0, webhook.ErrInvalidHeader},
		{"a timestamp far in the past", secret, headers(id, "-9223372036854775808", signature), body, 0, webhook.ErrTooOld},
		{"a timestamp far in the future", secret, headers(id, "9223372036854775807", signature), body, 0, webhook.ErrTooNew},
		{"no secret", "", genuine, body, 0, webhook.ErrNoSecret},
		{"an empty secret", "whsec_", genuine, body, 0, webhook.ErrInvalidSecret},
		{"a secret that isn't base64", "whsec_!", genuine, body, 0, webhook.ErrInvalidSecret},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := webhook.Verifier{Secrets: strings.Fields(test.secrets), Now: func() time.Time { return time.Unix(timestamp, 0).Add(test.late) }}
			if err := v.Verify(test.header, []byte(test.body)); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
}

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
		h := headers(id, fmt.Sprint(now.Unix()), signature)
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
