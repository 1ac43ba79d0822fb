package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db/postgres/pgtest"
)

// openStreams starts n streams at the first of two servers, 10 with each key, and waits
// until they are open. When one ends, it is resumed at the second server. ended counts
// those that the server ended cleanly.
func openStreams(t *testing.T, n int, servers []*instance, database, after string) (copies []*storeCopy, ended *atomic.Int64) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	t.Cleanup(func() { cancel(); wg.Wait() })
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	ended = &atomic.Int64{}
	start, err := strconv.ParseInt(after, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < n; i += 10 {
		key := adminKey(t, database)
		for j := range min(10, n-i) {
			c := newCopy(fmt.Sprintf("stream %d", i+j))
			c.last = start
			copies = append(copies, c)
			wg.Go(func() {
				lastID := after
				for at := 0; ctx.Err() == nil; {
					err := readStream(ctx, transport, servers[at].url, key, &lastID, c.apply)
					switch {
					case ctx.Err() != nil:
					case err == nil:
						ended.Add(1)
						at = 1
					case at == 0 && ended.Load() == 0 && strings.HasPrefix(err.Error(), "status"):
						t.Errorf("%s: %v", c.name, err)
					case at == 0:
						at = 1
					}
					time.Sleep(pause)
				}
			})
		}
	}
	return copies, ended
}

// addPets adds pets, a few a second, until it is stopped. It returns how many.
func addPets(c *client) (stop func() int) {
	done, added := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		for {
			select {
			case <-done:
				added <- n
				return
			case <-time.After(10 * pause):
			}
			if a, err := c.try("POST", "/v1/pets", newPetBody(fmt.Sprint("pet ", n), 1, "available")); err == nil && a.status == 201 {
				n++
			}
		}
	}()
	return func() int { close(done); return <-added }
}

func newestEvent(t testing.TB, c *client) string {
	t.Helper()
	_, after, _ := strings.Cut(c.get(t, "/v1/events?after=latest").header.Get("Link"), "after=")
	after, _, _ = strings.Cut(after, ">")
	return after
}

// TestEventStreamsMove: a server that stops ends its streams within the drain, and each
// resumes at another one without a gap. With ANIMALSTORE_SOAK=1 there are a thousand, and
// their memory and what other requests take is measured.
func TestEventStreamsMove(t *testing.T) {
	t.Parallel()
	n := 60
	if soak {
		n = 1000
	}
	database := pgtest.Shared(t).NewDatabase(t, "")
	instances := startInstances(t, 2, database)
	key := adminKey(t, database)
	first, second := newClient(t, instances[0].server, key), newClient(t, instances[1].server, key)
	for range 200 {
		wantStatus(t, first.get(t, "/v1/pets"), 200, "")
	}
	memory := residentMemory(t, instances[0].cmd.Process.Pid)
	stop := addPets(second)
	before := timeOfRequests(t, first)
	stop()
	copies, ended := openStreams(t, n, instances, database, newestEvent(t, second))
	stop = addPets(second)
	for _, c := range copies {
		eventually(t, time.Minute, c.name+" gets events", func() bool { c.mu.Lock(); defer c.mu.Unlock(); return len(c.items) > 3 })
	}
	if soak {
		after := timeOfRequests(t, first)
		more := residentMemory(t, instances[0].cmd.Process.Pid) - memory
		t.Logf("%d streams: %d MiB more memory; p99 of other requests %v before, %v with them", n, more>>20, before, after)
		if more > 64<<20 {
			t.Errorf("got %d MiB more memory, want at most 64", more>>20)
		}
		if after > 2*before+2*time.Millisecond {
			t.Errorf("got a p99 of %v with the streams, %v without", after, before)
		}
	}
	began := time.Now()
	instances[0].signal(syscall.SIGTERM)
	if code := instances[0].wait(); code != 0 {
		t.Errorf("exit code %d, want 0.\n%s", code, instances[0].output())
	}
	took := time.Since(began)
	eventually(t, time.Minute, "every stream ended cleanly", func() bool { return ended.Load() >= int64(n) })
	added := stop()
	newest, err := strconv.ParseInt(newestEvent(t, second), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range copies {
		eventually(t, time.Minute, c.name+" is up to date", func() bool { return c.position() >= newest })
		c.mu.Lock()
		for _, wrong := range c.wrong {
			t.Errorf("%s: %s", c.name, wrong)
		}
		c.mu.Unlock()
	}
	t.Logf("%d streams ended, the server stopped after %v; %d pets were added", n, took, added)
}

// timeOfRequests is the time that 99 of 100 requests take, beside little else. It is for
// the long run.
func timeOfRequests(t testing.TB, c *client) time.Duration {
	t.Helper()
	if !soak {
		return 0
	}
	var all []time.Duration
	for range 2000 {
		began := time.Now()
		wantStatus(t, c.get(t, "/v1/pets"), 200, "")
		all = append(all, time.Since(began))
		time.Sleep(2 * time.Millisecond)
	}
	slices.Sort(all)
	return all[len(all)*99/100]
}

func residentMemory(t testing.TB, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		skip(t, "this machine doesn't report memory: %v", err)
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}

// TestEventDelay measures how long after the response to a change its event arrives, at
// the server that made it and at another one.
func TestEventDelay(t *testing.T) {
	if !soak {
		t.Skip("a measurement: ANIMALSTORE_SOAK=1 runs it")
	}
	for _, test := range []struct {
		name      string
		database  string
		instances int
	}{{"SQLite", newDatabase(t), 1}, {"PostgreSQL", pgtest.Shared(t).NewDatabase(t, ""), 2}} {
		instances := startInstances(t, test.instances, test.database)
		key := adminKey(t, test.database)
		writer := newClient(t, instances[0].server, key)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		arrivals := make([]chan time.Time, len(instances))
		for i, in := range instances {
			arrivals[i] = make(chan time.Time, 10)
			lastID := newestEvent(t, writer)
			go readStream(ctx, &http.Transport{}, in.url, key, &lastID, func(e animalstore.Event) {
				if e.Type == animalstore.PetCreated {
					arrivals[i] <- time.Now()
				}
			})
		}
		time.Sleep(time.Second) // the streams begin
		delays := make([][]time.Duration, len(instances))
		for n := range 1000 {
			wantStatus(t, writer.do(t, "POST", "/v1/pets", newPetBody(fmt.Sprint("pet ", n), 1, "available")), 201, "")
			answered := time.Now()
			for i := range instances {
				delays[i] = append(delays[i], max(0, (<-arrivals[i]).Sub(answered)))
			}
		}
		for i, all := range delays {
			slices.Sort(all)
			p99, most := all[len(all)*99/100], time.Second
			if i == 0 {
				most = 50 * time.Millisecond
			}
			t.Logf("%s, instance %d: p50 %v, p99 %v, max %v", test.name, i, all[len(all)/2], p99, all[len(all)-1])
			if p99 > most {
				t.Errorf("%s, instance %d: p99 %v, want at most %v", test.name, i, p99, most)
			}
		}
	}
}

// TestFollowersOutlastTimeouts: neither the limit of 5 s on a request, nor those of 10 and
// 15 s on a connection, end a request that waits or a stream that is silent.
func TestFollowersOutlastTimeouts(t *testing.T) {
	t.Parallel()
	certFile, keyFile, roots := selfSigned(t)
	for _, test := range []struct {
		protocol string
		options  []option
	}{
		{"HTTP/1.1", nil},
		{"HTTP/1.1", []option{withArgs("--fast-path=false")}},
		{"HTTP/2.0", []option{withArgs("--tls-cert", certFile, "--tls-key", keyFile)}},
	} {
		t.Run(test.protocol, func(t *testing.T) {
			t.Parallel()
			s := start(t, test.options...)
			c := newClient(t, s, s.ownerKey())
			c.http = trusts(roots)
			c.http.Timeout = time.Minute
			if test.protocol == "HTTP/2.0" {
				c.http.Transport.(*http.Transport).ForceAttemptHTTP2 = true
			}
			after := newestEvent(t, c)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			arrived := make(chan animalstore.Event, 10)
			go func() {
				lastID := after
				if err := readStream(ctx, c.http.Transport, c.url, c.key, &lastID, func(e animalstore.Event) { arrived <- e }); ctx.Err() == nil {
					t.Errorf("the stream ended: %v", err)
				}
			}()
			answered := make(chan response, 1)
			go func() {
				a, err := c.try("GET", "/v1/events?wait=30&after="+after, "")
				if err != nil {
					t.Error(err)
				}
				answered <- a
			}()
			time.Sleep(16 * time.Second) // longer than any of them
			other := newClient(t, s, s.ownerKey())
			other.http = trusts(roots)
			wantStatus(t, other.do(t, "POST", "/v1/pets", newPetBody("Rex", 7, "available")), 201, "")
			if a := <-answered; a.status != 200 || !strings.Contains(a.body, "Rex") {
				t.Errorf("got %d %s, want the event", a.status, a.body)
			}
			select {
			case e := <-arrived:
				if e.Type != animalstore.PetCreated {
					t.Errorf("got %s, want the event of the pet", e.Type)
				}
			case <-time.After(time.Minute):
				t.Error("the stream is silent")
			}
			res, err := c.http.Get(c.url + "/v1/events")
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if res.Proto != test.protocol {
				t.Errorf("got %s, want %s", res.Proto, test.protocol)
			}
		})
	}
}
