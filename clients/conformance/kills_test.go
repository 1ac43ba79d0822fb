package conformance

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"animalstore/client"
	"animalstore/internal/testenv"
)

// TestCreatesThroughKills: each client creates pets while the server is killed again and
// again and some responses are lost, on a key with 300 requests per minute. Every pet
// exists exactly once. They go on until there were enough kills.
func TestCreatesThroughKills(t *testing.T) {
	t.Parallel()
	each := testenv.Count(50, 1000)
	pause := time.Duration(testenv.Count(300, 1000)) * time.Millisecond
	server := startReal(t)
	var creating sync.WaitGroup
	var kills atomic.Int64
	lost, created := make([]atomic.Int64, len(clients)), make([]int, len(clients))
	for i, c := range clients {
		a, key, url := c.start(t), server.newKey(c.name, 300), startLossy(t, server.url, &lost[i])
		creating.Go(func() {
			created[i] = createPets(t, a, url, key, func(n int) bool { return n < each || kills.Load() < 3 })
		})
	}
	stop := killRepeatedly(server, pause, &kills)
	creating.Wait()
	stop()
	for i, c := range clients {
		if got, want := lost[i].Load(), int64(each/lossRate/2); got < want {
			t.Errorf("%s: %d responses were lost, want at least %d", c.name, got, want)
		}
	}
	names := map[string]int{}
	for pet, err := range server.owner().ListPets(t.Context(), client.PetQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		names[pet.Name]++
	}
	want := 0
	for i, c := range clients {
		want += created[i]
		for n := range created[i] {
			if name := petName(c.name, n); names[name] != 1 {
				t.Errorf("there are %d pets named %s, want 1", names[name], name)
			}
		}
	}
	if got := len(names); got != want {
		t.Errorf("got %d names, want %d", got, want)
	}
}

func petName(client string, n int) string { return client + " " + strconv.Itoa(n) }

// createPets creates pets, a few at a time, while more says so, with pauses so that kills
// hit some of them. It returns their number.
func createPets(t testing.TB, a *adapter, url, key string, more func(n int) bool) (n int) {
	id := fmt.Sprintf("creates %d", clientNumber.Add(1))
	args := map[string]any{"baseURL": url, "apiKey": key, "maxAttempts": 10_000, "backoffBase": 20, "backoffMax": 200, "attemptTimeout": 10_000}
	if reply, err := a.do(command{Client: id, Call: "new", Args: args}); err != nil || reply["error"] != nil {
		t.Errorf("%s: %v %v", a.name, err, reply)
		return 0
	}
	numbers := make(chan int)
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() {
			for n := range numbers {
				reply, err := a.do(command{Client: id, Call: "createPet", Args: map[string]any{"pet": map[string]any{"name": petName(a.name, n), "categoryId": 7}}})
				if err != nil || reply["error"] != nil {
					t.Errorf("%s: pet %d: %v %v", a.name, n, err, show(reply["error"]))
				}
			}
		})
	}
	for ; more(n); n++ {
		numbers <- n
		time.Sleep(20 * time.Millisecond)
	}
	close(numbers)
	running.Wait()
	return n
}

// killRepeatedly kills the server and starts it again, with pauses, until stop is called.
func killRepeatedly(server *realServer, pause time.Duration, kills *atomic.Int64) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case <-time.After(pause):
				server.restart(syscall.SIGKILL)
				server.awaitReady()
				kills.Add(1)
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// lossRate is how many creates there are for one whose response is lost.
const lossRate = 5

// startLossy starts a proxy that loses the response to every fifth create, after the
// server has sent it. A kill rarely hits the moment between a commit and its response.
func startLossy(t testing.TB, target string, lost *atomic.Int64) string {
	t.Helper()
	address, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	var created atomic.Int64
	proxy := httptest.NewUnstartedServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(address) },
		ModifyResponse: func(res *http.Response) error {
			if res.StatusCode == http.StatusCreated && created.Add(1)%lossRate == 0 {
				lost.Add(1)
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
