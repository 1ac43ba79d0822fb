package e2e

import (
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"animalstore"
	goclient "animalstore/client"
	"animalstore/client/webhook"
	"animalstore/internal/db/postgres/pgtest"
)

// hookReceiver is a receiver over TLS. It verifies what it gets, takes its time, and
// sees whether an event is sent twice at once.
type hookReceiver struct {
	*httptest.Server
	t       *testing.T
	respond func(w http.ResponseWriter, r *http.Request)

	mu       sync.Mutex
	secrets  []string
	busy     map[string]int       // requests in progress by webhook-id
	bodies   map[string]string    // by webhook-id
	ids      map[string]string    // webhook-ids by body
	accepted map[string]int       // by webhook-id
	arrived  map[string]time.Time // the first attempt, by webhook-id
	attempts int
}

func newHookReceiver(t *testing.T, respond func(http.ResponseWriter, *http.Request)) *hookReceiver {
	t.Helper()
	h := &hookReceiver{t: t, respond: respond, busy: map[string]int{}, bodies: map[string]string{}, ids: map[string]string{}, accepted: map[string]int{}, arrived: map[string]time.Time{}}
	h.Server = httptest.NewUnstartedServer(h)
	h.Config.ErrorLog = log.New(io.Discard, "", 0) // about connections that were cut off
	h.StartTLS()
	t.Cleanup(h.Close)
	return h
}

func (h *hookReceiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get(webhook.HeaderID)
	h.begin(id)
	defer h.end(id)
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the sender was killed
	}
	h.check(id, r.Header, body)
	recorder := httptest.NewRecorder()
	h.respond(recorder, r)
	if recorder.Code/100 == 2 {
		h.mu.Lock()
		h.accepted[id]++
		h.mu.Unlock()
	}
	w.WriteHeader(recorder.Code)
}

func (h *hookReceiver) begin(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.attempts++
	if _, before := h.arrived[id]; !before {
		h.arrived[id] = time.Now()
	}
	if h.busy[id]++; h.busy[id] > 1 {
		h.t.Errorf("%s is sent %d times at once", id, h.busy[id])
	}
}

func (h *hookReceiver) end(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.busy[id]--; h.busy[id] == 0 {
		delete(h.busy, id)
	}
}

// check verifies the signature, and that an event and its webhook-id belong together
// in all attempts.
func (h *hookReceiver) check(id string, header http.Header, body []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := (webhook.Verifier{Secrets: h.secrets}).Verify(header, body); err != nil {
		h.t.Errorf("%s: %v", id, err)
	}
	if before, ok := h.bodies[id]; ok && before != string(body) {
		h.t.Errorf("%s: got %s, and before %s", id, body, before)
	}
	if before, ok := h.ids[string(body)]; ok && before != id {
		h.t.Errorf("%s was sent as %s, and before as %s", body, id, before)
	}
	h.bodies[id], h.ids[string(body)] = string(body), id
}

func (h *hookReceiver) inProgress() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.busy)
}

// trusted are the options of a server that may deliver to the receiver. The certificate
// of all receivers is the same.
func (h *hookReceiver) trusted() []option {
	h.t.Helper()
	file := filepath.Join(h.t.TempDir(), "receiver.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.Certificate().Raw}), 0o600); err != nil {
		h.t.Fatal(err)
	}
	return []option{withArgs("--webhook-networks", "127.0.0.0/8"), withEnv("SSL_CERT_FILE=" + file)}
}

// subscribe creates a webhook to the receiver.
func (h *hookReceiver) subscribe(c *goclient.Client, types animalstore.EventPatterns) goclient.WebhookWithSecret {
	h.t.Helper()
	created, err := c.CreateWebhook(h.t.Context(), animalstore.NewWebhook{URL: h.URL + "/hook", Types: types})
	if err != nil {
		h.t.Fatal(err)
	}
	h.trust(created.Secret)
	return created
}

// trust makes the receiver accept another secret.
func (h *hookReceiver) trust(secret string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.secrets = append(h.secrets, secret)
}

// unreliably takes up to 20 ms and fails one time in five, with a status or without a
// response.
func unreliably(w http.ResponseWriter, _ *http.Request) {
	time.Sleep(rand.N(20 * time.Millisecond))
	switch rand.N(10) {
	case 0:
		w.WriteHeader(http.StatusInternalServerError)
	case 1:
		panic(http.ErrAbortHandler) // closes the connection
	}
}

func hookClient(t *testing.T, url, key string) *goclient.Client {
	t.Helper()
	c, err := goclient.New(url, key, goclient.WithBackoff(10*time.Millisecond, 100*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// createPets creates pets at all instances until there are n of them. Those that are
// down are tried again.
func createPets(t *testing.T, instances []*instance, key string, n int64, created *atomic.Int64) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, in := range instances {
		c := hookClient(t, in.url, key)
		for range 4 {
			wg.Go(func() {
				for created.Load() < n && t.Context().Err() == nil {
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
					if _, err := c.CreatePet(ctx, animalstore.NewPet{Name: "Rex", CategoryID: 1}); err == nil {
						created.Add(1)
					}
					cancel()
					time.Sleep(pause)
				}
			})
		}
	}
}

// TestWebhooksOutlastKills: instances are killed while they deliver, and a fifth of the
// attempts fails. Every event arrives, and none is sent by two instances at once.
func TestWebhooksOutlastKills(t *testing.T) {
	onlyForRelease(t, "a load that takes long")
	t.Parallel()
	onEachEngine(t, func(t *testing.T, database string, count int) {
		events, kills := int64(200), 3
		if soak {
			events, kills = 10_000, 40
		}
		r := newHookReceiver(t, unreliably)
		instances := startInstances(t, count, database, r.trusted()...)
		key := adminKey(t, database)
		hook := r.subscribe(hookClient(t, instances[0].url, key), "pet.*")

		var created atomic.Int64
		var writing sync.WaitGroup
		writing.Go(func() { createPets(t, instances, key, events, &created) })
		for n := range kills {
			eventually(t, time.Minute, "more is created", func() bool { return created.Load() >= events*int64(n+1)/int64(kills+1) })
			killBusy(t, r, instances[rand.N(len(instances)):][:1], database)
		}
		writing.Wait()
		if !soak && count > 1 {
			// Nobody is left who sends, so leases don't have to be waited for.
			killBusy(t, r, instances, database, "UPDATE deliveries SET leased_until = 0")
		}
		c := hookClient(t, instances[0].url, key)
		want := petEvents(t, c)
		if len(want) < int(events) {
			t.Fatalf("there are %d events, want %d", len(want), events)
		}
		began := time.Now()
		for left := missing(r, want); len(left) > 0; left = missing(r, want) {
			if time.Since(began) > 5*time.Minute {
				t.Fatalf("%d of %d events have not arrived: %.200v", len(left), len(want), left)
			}
			retryFailed(t, c, hook.ID)
			time.Sleep(100 * time.Millisecond)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		t.Logf("%d events, %d attempts, %d kills", len(want), r.attempts, kills)
	})
}

// killBusy kills instances while something is being sent, runs statements on a
// PostgreSQL database, and starts the instances again.
func killBusy(t *testing.T, r *hookReceiver, victims []*instance, database string, statements ...string) {
	t.Helper()
	// There may be nothing left to send, at the end.
	for patience := time.Now().Add(time.Second); r.inProgress() == 0 && time.Now().Before(patience); {
		time.Sleep(time.Millisecond)
	}
	for _, in := range victims {
		in.kill()
	}
	if len(victims) == 1 && !isURL(database) || len(statements) > 0 {
		eventually(t, time.Minute, "the receiver notices", func() bool { return r.inProgress() == 0 })
	}
	for _, statement := range statements {
		at, err := url.Parse(database)
		if err != nil {
			t.Fatal(err)
		}
		pgtest.Shared(t).MustExec(t, strings.TrimPrefix(at.Path, "/"), statement)
	}
	for _, in := range victims {
		in.start(t, database)
	}
}

// petEvents returns the webhook-ids of all events about pets.
func petEvents(t *testing.T, c *goclient.Client) map[string]bool {
	t.Helper()
	ids := map[string]bool{}
	for e, err := range c.ListEvents(t.Context(), goclient.EventsOptions{Types: []string{"pet.*"}}) {
		if err != nil {
			t.Fatal(err)
		}
		ids[fmt.Sprint("evt_", e.ID)] = true
	}
	return ids
}

// missing returns what the receiver has not accepted.
func missing(r *hookReceiver, want map[string]bool) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var left []string
	for id := range maps.Keys(want) {
		if r.accepted[id] == 0 {
			left = append(left, id)
		}
	}
	return left
}

// retryFailed makes all deliveries due that wait for another attempt, as an operator
// could: the second takes five minutes and more.
func retryFailed(t *testing.T, c *goclient.Client, webhookID int64) {
	t.Helper()
	for d, err := range c.ListDeliveries(t.Context(), webhookID, goclient.DeliveryQuery{State: animalstore.DeliveryPending}) {
		if err != nil {
			t.Fatal(err)
		}
		if len(d.Attempts) > 0 && d.NextAttemptAt.After(time.Now()) {
			if _, err := c.RetryDelivery(t.Context(), webhookID, d.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
}
