package client_test

import (
	"testing"
	"testing/synctest"
	"time"

	"animalstore"
	"animalstore/client"
	"animalstore/client/clienttest"
)

// TestPacingDoesNotSpreadDays: the rest of a day's requests are used when they are
// needed.
func TestPacingDoesNotSpreadDays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := clienttest.New(t, clienttest.InMemory(), clienttest.WithClientOptions(client.WithPacing()),
			clienttest.WithPlan(animalstore.PlanEnterprise, animalstore.Limits{PerMinute: 10, PerDay: 15}))
		began := time.Now()
		for range 15 {
			if _, err := store.Client.GetLimits(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if got := time.Since(began); got > 2*time.Minute {
			t.Errorf("the 15 requests of a day took %v, want two minutes at most", got)
		}
	})
}

// TestPacingWithASharedKey: two paced jobs with one key can be refused, because neither
// knows about the other. They wait, finish and aren't banned.
func TestPacingWithASharedKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := clienttest.New(t, clienttest.InMemory(), perMinute(20), clienttest.WithClientOptions(client.WithPacing()))
		jobs := []*client.Client{store.Client, store.NewClient(store.Key, client.WithPacing())}
		err := inParallel(len(jobs), len(jobs), func(job int) error {
			return inParallel(4, 60, func(int) error { return only(jobs[job].GetLimits(t.Context())) })
		})
		if err != nil {
			t.Error(err)
		}
		limits, err := store.Client.GetLimits(t.Context())
		if err != nil || limits.Ban.Level > 0 {
			t.Errorf("got %+v, %v, want no ban", limits, err)
		}
	})
}
