package webhook_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"time"

	"animalstore"
	"animalstore/client/webhook"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// A receiver verifies a webhook before it reads it. docs/webhooks.md shows the same
// code.
func ExampleVerify_receiver() {
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	hook := func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil || webhook.Verify(secret, r.Header, body) != nil {
			http.Error(w, "not genuine", http.StatusBadRequest)
			return
		}
		var message animalstore.WebhookMessage
		if err := json.Unmarshal(body, &message); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		data, err := message.DecodeData()
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		switch data := data.(type) { // nil for a ping and for types that are newer than this code
		case animalstore.Pet:
			fmt.Println(r.Header.Get(webhook.HeaderID), message.Type, data.Name)
		case animalstore.Order:
			fmt.Println(r.Header.Get(webhook.HeaderID), message.Type, data.PetID)
		}
		w.WriteHeader(http.StatusNoContent)
	}

	const body = `{"type":"pet.created","timestamp":"2026-05-04T03:02:01.987Z","data":{"id":1,"name":"Rex","categoryId":7,"status":"available"}}`
	for _, signer := range []string{secret, "whsec_c29tZXRoaW5nIGVsc2U="} {
		now := time.Now()
		w, _ := standardwebhooks.NewWebhook(signer)
		signature, _ := w.Sign("evt_1", now, []byte(body))
		r := httptest.NewRequest(http.MethodPost, "/hook", strings.NewReader(body))
		r.Header.Set(webhook.HeaderID, "evt_1")
		r.Header.Set(webhook.HeaderTimestamp, strconv.FormatInt(now.Unix(), 10))
		r.Header.Set(webhook.HeaderSignature, signature)
		response := httptest.NewRecorder()
		hook(response, r)
		fmt.Println(response.Code)
	}
	// Output:
	// evt_1 pet.created Rex
	// 204
	// 400
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
