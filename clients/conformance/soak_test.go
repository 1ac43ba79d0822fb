package conformance

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"animalstore/client"
	"animalstore/internal/testenv"
)

// creates is how many pets each client creates.
const creates = 1000

// TestKills: in each language, one client creates pets and another follows their events,
// while the server is killed every second and responses are lost. Every pet exists
// exactly once, and the followers get every event once and in order.
func TestKills(t *testing.T) {
	testenv.OnlySoak(t, "kills a server for some minutes")
	server := startReal(t)
	followed := make([][]int64, len(clients))
	var creating, following sync.WaitGroup
	for i, c := range clients {
		a := c.start(t)
		creator, follower := server.newKey(c.name, 300), server.newKey(c.name, 1_000_000)
		lossy := startLossy(t, server.url)
		creating.Go(func() { createPets(t, a, lossy, creator) })
		following.Go(func() { followed[i] = followPets(t, a, server.url, follower, creates*len(clients)) })
	}
	stop := killRepeatedly(server)
	creating.Wait()
	stop()
	following.Wait()

	names := map[string]int{}
	for pet, err := range server.owner().ListPets(t.Context(), client.PetQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		names[pet.Name]++
	}
	var events []int64
	for event, err := range server.owner().ListEvents(t.Context(), client.EventsOptions{Types: "pet.*"}) {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, event.ID)
	}
	for i, c := range clients {
		for n := range creates {
			if name := petName(c.name, n); names[name] != 1 {
				t.Errorf("there are %d pets named %s, want 1", names[name], name)
			}
		}
		if !slices.Equal(followed[i], events) {
			t.Errorf("%s: got events %v, want %v", c.name, followed[i], events)
		}
	}
}

func petName(client string, n int) string { return client + " " + strconv.Itoa(n) }

// newClient creates a client that survives kills, and returns its name.
func newClient(t testing.TB, a *adapter, url, key string) string {
	id := fmt.Sprintf("soak %d", clientNumber.Add(1))
	args := map[string]any{"baseURL": url, "apiKey": key, "maxAttempts": 10_000, "backoffBase": 20, "backoffMax": 200, "attemptTimeout": 10_000}
	if reply, err := a.do(command{Client: id, Call: "new", Args: args}); err != nil || reply["error"] != nil {
		t.Errorf("%s: %v %v", a.name, err, reply)
	}
	return id
}

// createPets creates pets, four at a time.
func createPets(t testing.TB, a *adapter, url, key string) {
	id := newClient(t, a, url, key)
	var next atomic.Int64
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() {
			for n := int(next.Add(1)) - 1; n < creates; n = int(next.Add(1)) - 1 {
				reply, err := a.do(command{Client: id, Call: "createPet", Args: map[string]any{"pet": map[string]any{"name": petName(a.name, n), "categoryId": 7}}})
				if err != nil || reply["error"] != nil {
					t.Errorf("%s: pet %d: %v %v", a.name, n, err, show(reply["error"]))
				}
			}
		})
	}
	running.Wait()
}

// followPets returns the ids of the first n events of pets.
func followPets(t testing.TB, a *adapter, url, key string, n int) (ids []int64) {
	id := newClient(t, a, url, key)
	from := map[string]any{"types": []string{"pet.*"}}
	for len(ids) < n {
		reply, err := a.do(command{Client: id, Call: "events", Args: map[string]any{"events": from}, Options: map[string]any{"take": min(100, n-len(ids))}})
		events, _ := reply["result"].([]any)
		if err != nil || reply["error"] != nil || len(events) == 0 {
			t.Errorf("%s: got %d events, %v %v", a.name, len(events), err, show(reply["error"]))
			return ids
		}
		for _, event := range events {
			from["after"] = event.(map[string]any)["id"]
			ids = append(ids, int64(from["after"].(float64)))
		}
	}
	return ids
}

// killRepeatedly kills the server every second and starts it again, until stop is called.
func killRepeatedly(server *realServer) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case <-time.After(time.Second):
				server.end(syscall.SIGKILL)
				server.start()
				server.awaitReady()
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// startLossy starts a proxy that loses the response to every fifth create, after the
// server has sent it. A kill rarely hits the moment between a commit and its response.
func startLossy(t testing.TB, target string) string {
	t.Helper()
	address, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	var created atomic.Int64
	proxy := httptest.NewUnstartedServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(address) },
		ModifyResponse: func(res *http.Response) error {
			if res.StatusCode == http.StatusCreated && created.Add(1)%5 == 0 {
				return errors.New("the response is lost")
			}
			return nil
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	})
	proxy.Config.SetKeepAlivesEnabled(false) // see startScripted
	proxy.Start()
	t.Cleanup(proxy.Close)
	return proxy.URL
}
