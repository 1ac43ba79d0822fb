package client_test

import (
	"net/http"
	"sync/atomic"
	"testing"

	"animalstore"
	"animalstore/client"
	"animalstore/client/clienttest"
)

// TestResent: a response that is replayed because the client itself sent the call again can be
// told from one to an earlier call.
func TestResent(t *testing.T) {
	var creates atomic.Int64
	store := clienttest.New(t, clienttest.WithMiddleware(func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost && creates.Add(1) == 1 {
				h.ServeHTTP(discardedResponse{}, r)
				panic(http.ErrAbortHandler)
			}
			h.ServeHTTP(w, r)
		})
	}), clienttest.WithClientOptions(client.WithMaxAttempts(2)))
	for i, want := range []client.Meta{{Replayed: true, Resent: true}, {Replayed: true}} {
		var got client.Meta
		_, err := store.Client.CreatePet(t.Context(), animalstore.NewPet{Name: "Rex", CategoryID: 1},
			client.IdempotencyKey("k"), client.ReadMeta(&got))
		if err != nil || got.Replayed != want.Replayed || got.Resent != want.Resent {
			t.Errorf("call %d: replayed is %t and resent %t, %v; want %t and %t", i+1, got.Replayed, got.Resent, err, want.Replayed, want.Resent)
		}
	}
}
