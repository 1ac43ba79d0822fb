package clienttest_test

import (
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"animalstore"
	"animalstore/client"
	"animalstore/client/clienttest"
)

// TestNew: one call starts a service, and two services share nothing.
func TestNew(t *testing.T) {
	one, two := clienttest.New(t), clienttest.New(t)
	if _, err := one.Client.CreatePet(t.Context(), animalstore.NewPet{Name: "Rex"}); err != nil {
		t.Fatal(err)
	}
	for _, err := range two.Client.ListPets(t.Context(), animalstore.PetQuery{}) {
		t.Errorf("got a pet of another store (%v), want none", err)
	}
	// The service is real, on a real address.
	res, err := http.Get(one.URL + "/v1/pets")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusUnauthorized {
		t.Errorf("got %d without a key, want 401", res.StatusCode)
	}
	limits, err := one.Client.GetLimits(t.Context())
	if err != nil || limits.Plan != animalstore.PlanEnterprise {
		t.Errorf("got %+v, %v, want a key on enterprise", limits, err)
	}
}

// TestOptions: each option takes effect.
func TestOptions(t *testing.T) {
	var requests atomic.Int64
	at := time.Date(2031, 1, 2, 3, 4, 5, 0, time.UTC)
	store := clienttest.New(t,
		clienttest.WithPlan(animalstore.PlanFree, animalstore.Limits{}),
		clienttest.WithPermissions(animalstore.Read),
		clienttest.WithClock(func() time.Time { return at }),
		clienttest.WithMiddleware(func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.UserAgent() != "mine" {
					t.Errorf("got User-Agent %q, want mine", r.UserAgent())
				}
				requests.Add(1)
				h.ServeHTTP(w, r)
			})
		}),
		clienttest.WithClientOptions(client.WithUserAgent("mine")))
	limits, err := store.Client.GetLimits(t.Context())
	if err != nil || limits.Plan != animalstore.PlanFree || !limits.Day.Reset.Equal(time.Date(2031, 1, 3, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("got %+v, %v, want the plan free, until the day is over", limits, err)
	}
	_, err = store.Client.CreatePet(t.Context(), animalstore.NewPet{Name: "Rex"})
	var coded *animalstore.Error
	if !errors.As(err, &coded) || coded.Code != animalstore.InsufficientPermission {
		t.Errorf("got %v, want insufficient_permission", err)
	}
	if _, err := store.Client.GetPet(t.Context(), 1); !errors.As(err, &coded) || coded.Code != animalstore.EndpointRemoved {
		t.Errorf("got %v in 2031, want endpoint_removed", err)
	}
	if got := requests.Load(); got != 3 {
		t.Errorf("got %d requests, want 3", got)
	}
}
