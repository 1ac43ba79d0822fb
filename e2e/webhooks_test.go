package e2e

import (
	"fmt"
	"io"
	"log"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"animalstore"
	goclient "animalstore/client"
	"animalstore/client/webhook"
	"animalstore/internal/testenv"
)

// hookReceiver is a receiver over TLS. It verifies deliveries, takes its time, and
// detects an event that is sent twice at once.
type hookReceiver struct {
	*httptest.Server
	t       *testing.T
	respond func(w http.ResponseWriter, r *http.Request)

	mu       sync.Mutex
	secrets  []string
	busy     map[string]int    // requests in progress by webhook-id
	bodies   map[string]string // by webhook-id
	ids      map[string]string // webhook-ids by body
	accepted map[string]int    // by webhook-id
}

func newHookReceiver(t *testing.T, respond func(http.ResponseWriter, *http.Request)) *hookReceiver {
	t.Helper()
	h := &hookReceiver{t: t, respond: respond, busy: map[string]int{}, bodies: map[string]string{}, ids: map[string]string{}, accepted: map[string]int{}}
	h.Server = httptest.NewUnstartedServer(h)
	h.Config.ErrorLog = log.New(io.Discard, "", 0) // about connections that were cut off
	h.StartTLS()
	t.Cleanup(h.Close)
	return h
}

func (h *hookReceiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get(webhook.HeaderID)
	h.count(id, 1)
	defer h.count(id, -1)
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

// count counts a request in progress.
func (h *hookReceiver) count(id string, by int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.busy[id] += by; h.busy[id] > 1 {
		h.t.Errorf("%s is sent %d times at once", id, h.busy[id])
	}
	if h.busy[id] == 0 {
		delete(h.busy, id)
	}
}

// check verifies the signature, and that an event has the same webhook-id in all
// attempts.
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

// trusted returns the options of a server that may deliver to the receiver. All
// receivers have the same certificate.
func (h *hookReceiver) trusted() []option {
	h.t.Helper()
	return []option{withArgs("--webhook-networks", "127.0.0.0/8"), trusting(h.t, h.Server)}
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

// unreliably takes up to 20 ms and fails one time in five, with an error status or
// without a response.
func unreliably(w http.ResponseWriter, _ *http.Request) {
	time.Sleep(rand.N(20 * time.Millisecond))
	switch rand.N(10) {
	case 0:
		w.WriteHeader(http.StatusInternalServerError)
	case 1:
		panic(http.ErrAbortHandler) // closes the connection
	}
}

// TestWebhooksSurviveKills: instances are killed while they deliver, and a fifth of the
// attempts fail. Every event arrives, and none is sent by two instances at once.
func TestWebhooksSurviveKills(t *testing.T) {
	testenv.OnlySoak(t, "kills instances 80 times")
	t.Parallel()
	onEachEngine(t, func(t *testing.T, database string, count int) {
		r := newHookReceiver(t, unreliably)
		instances := startInstances(t, count, database, r.trusted()...)
		key := adminKey(t, database)
		hook := r.subscribe(newGoClient(t, instances[0].url, key), "pet.*")

		w := startWriters(t, 16, urlsOf(instances), key)
		for range 40 {
			w.awaitMore(250)
			victim := instances[rand.N(len(instances))]
			victim.kill()
			if count == 1 {
				testenv.Eventually(t, "the receiver notices", func() bool { return r.inProgress() == 0 })
			}
			victim.start(t, database)
		}
		w.stop()
		c := newGoClient(t, instances[0].url, key)
		want := petEvents(t, c)
		if len(want) < 1000 {
			t.Fatalf("there are %d events, want at least a thousand", len(want))
		}
		testenv.Eventually(t, "every event arrives", func() bool {
			retryFailed(t, c, hook.ID)
			return len(missing(r, want)) == 0
		})
	})
}

// petEvents returns the webhook-ids of all events about pets.
func petEvents(t *testing.T, c *goclient.Client) map[string]bool {
	t.Helper()
	ids := map[string]bool{}
	for e, err := range c.ListEvents(t.Context(), goclient.EventsOptions{Types: "pet.*"}) {
		if err != nil {
			t.Fatal(err)
		}
		ids[fmt.Sprint("evt_", e.ID)] = true
	}
	return ids
}

// missing returns the events that the receiver has not accepted.
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
// could: the second retry would come only after five minutes.
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

// TestWebhookGuide: the receiver in Go in docs/webhooks.md is the one that runs, in the
// examples of client/webhook. clients/conformance runs the others.
func TestWebhookGuide(t *testing.T) {
	t.Parallel()
	blocks, problems := readBlocks(string(mustRead(t, "../docs/webhooks.md")))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	var shown []string
	for _, b := range blocks {
		if b.lang == "go" {
			shown = append(shown, b.text)
		}
	}
	if want := goReceiver(t, string(mustRead(t, "../client/webhook/example_test.go"))); len(shown) != 1 || shown[0] != want {
		t.Errorf("the guide shows:\n%s\nwant the receiver that is tested:\n%s", strings.Join(shown, "---\n"), want)
	}
}

// goReceiver returns the handler of ExampleVerify_receiver, as the body of a function.
func goReceiver(t *testing.T, example string) string {
	t.Helper()
	const first, last = "\thook := func(", "\n\t}\n"
	_, rest, begins := strings.Cut(example, first)
	code, _, ends := strings.Cut(rest, last)
	if !begins || !ends {
		t.Fatal("the example has no handler named hook")
	}
	return strings.TrimPrefix(strings.ReplaceAll("\n"+first+code+last, "\n\t", "\n"), "\n")
}
