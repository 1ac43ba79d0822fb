package e2e

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"
	"time"

	"animalstore"
	goclient "animalstore/client"
)

// arrivals returns when each pet's event arrived first.
func (h *hookReceiver) arrivals() map[int64]time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := map[int64]time.Time{}
	for id, body := range h.bodies {
		var event struct{ Data animalstore.Pet }
		if err := json.Unmarshal([]byte(body), &event); err != nil {
			h.t.Errorf("%s: %v", id, err)
		}
		at[event.Data.ID] = h.arrived[id]
	}
	return at
}

// TestWebhooksAreIsolated: a receiver that hangs and one that fails don't delay what is
// sent to a third. The soak measures how long that takes.
func TestWebhooksAreIsolated(t *testing.T) {
	onlyForRelease(t, "a load that takes long")
	t.Parallel()
	onEachEngine(t, func(t *testing.T, database string, count int) {
		pets, every := 60, 5*time.Millisecond
		if soak {
			pets, every = 4000, 25*time.Millisecond // far beyond the timeout of an attempt
		}
		hangs := newHookReceiver(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		fails := newHookReceiver(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
		works := newHookReceiver(t, func(http.ResponseWriter, *http.Request) {})
		instances := startInstances(t, count, database, works.trusted()...)
		key := adminKey(t, database)
		var clients []*goclient.Client
		for _, in := range instances {
			clients = append(clients, hookClient(t, in.url, key))
		}
		for _, r := range []*hookReceiver{hangs, fails, works} {
			r.subscribe(clients[0], "pet.created")
		}
		created := map[int64]time.Time{}
		for n := range pets {
			pet, err := clients[n%len(clients)].CreatePet(t.Context(), animalstore.NewPet{Name: "Rex", CategoryID: 1})
			if err != nil {
				t.Fatal(err)
			}
			created[pet.ID] = time.Now()
			time.Sleep(every)
		}
		// Less than the timeout that the one that hangs runs into.
		eventually(t, animalstore.AttemptTimeout*2/3, "all arrives at the one that works", func() bool { return len(works.arrivals()) == pets })
		if hangs.inProgress() == 0 || len(fails.arrivals()) == 0 {
			t.Error("nothing hangs or fails: the test proves nothing")
		}
		var took []time.Duration
		for id, at := range works.arrivals() {
			took = append(took, at.Sub(created[id]))
		}
		slices.Sort(took)
		p50, p99 := took[len(took)/2], took[len(took)*99/100]
		t.Logf("from commit to delivery: median %v, p99 %v, longest %v", p50, p99, took[len(took)-1])
		if soak && p99 > time.Second {
			t.Errorf("the p99 is %v, want at most 1s", p99)
		}
	})
}
