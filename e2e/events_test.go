package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"animalstore"
	goclient "animalstore/client"
	"animalstore/internal/testenv"
)

// writers make every kind of change to a store, through several instances.
type writers struct {
	t       *testing.T
	stop    func()
	made    atomic.Int64 // changes that were acknowledged
	changes changes
}

// startWriters starts n writers.
func startWriters(t *testing.T, n int, urls []string, key string) *writers {
	ctx, cancel := context.WithCancel(context.Background())
	w := &writers{t: t}
	var wg sync.WaitGroup
	w.stop = func() { cancel(); wg.Wait() }
	t.Cleanup(w.stop)
	for i := range n {
		c := newGoClient(t, urls[i%len(urls)], key, goclient.WithMaxAttempts(3))
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 0))
			var mine []int64 // pets that this writer made
			for n := 0; ctx.Err() == nil; n++ {
				w.note(w.change(c, random, &mine, fmt.Sprintf("%d of writer %d", n, i)))
				time.Sleep(pause)
			}
		})
	}
	return w
}

func (w *writers) note(err error) {
	var coded *animalstore.Error
	if err == nil || errors.As(err, &coded) && coded.Code != animalstore.Unavailable {
		w.made.Add(1)
	}
}

// change makes one change, with a name of its own; later changes depend on its outcome. Many
// are refused because another writer was faster.
func (w *writers) change(c *goclient.Client, random *rand.Rand, mine *[]int64, number string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	pick := int64(random.IntN(200) + 1) // any writer's
	if len(*mine) > 0 && random.IntN(2) == 0 {
		pick = (*mine)[random.IntN(len(*mine))]
	}
	switch kind := random.IntN(100); {
	case kind < 35:
		name := fmt.Sprintf("pet %s <&> \u2028 ü", number)
		w.changes.send(name)
		pet, err := c.CreatePet(ctx, animalstore.NewPet{Name: name, CategoryID: int64(random.IntN(40))})
		if err == nil {
			*mine = append(*mine, pet.ID)
		}
		return w.changes.acknowledge(err, animalstore.PetCreated, pet.ID, name)
	case kind < 55:
		name := "renamed " + number
		w.changes.send(name)
		_, err := c.UpdatePet(ctx, pick, animalstore.PetPatch{Name: &name})
		return w.changes.acknowledge(err, animalstore.PetUpdated, pick, name)
	case kind < 63:
		return w.changes.acknowledge(c.DeletePet(ctx, pick), animalstore.PetDeleted, pick, "")
	case kind < 80:
		order, err := c.PlaceOrder(ctx, animalstore.NewOrder{PetID: pick})
		if w.changes.acknowledge(err, animalstore.OrderCreated, order.ID, "") != nil {
			return err
		}
		next := []animalstore.OrderStatus{animalstore.OrderApproved, animalstore.OrderCancelled}[random.IntN(2)]
		_, err = c.UpdateOrder(ctx, order.ID, animalstore.OrderPatch{Status: &next})
		return w.changes.acknowledge(err, animalstore.OrderUpdated, order.ID, "")
	case kind < 90:
		category := animalstore.Category{ID: int64(random.IntN(40)), Name: "category " + number}
		_, err := c.PutCategory(ctx, category)
		return w.changes.acknowledge(err, animalstore.CategoryUpdated, category.ID, category.Name)
	default:
		return w.changeKeys(ctx, c, "key "+number)
	}
}

func (w *writers) changeKeys(ctx context.Context, c *goclient.Client, name string) error {
	key, err := c.CreateKey(ctx, goclient.NewKey{Name: name})
	if w.changes.acknowledge(err, animalstore.KeyCreated, key.ID, name) != nil {
		return err
	}
	_, err = c.UpdateKey(ctx, key.ID, animalstore.KeyPatch{Name: new("renamed")})
	if w.changes.acknowledge(err, animalstore.KeyUpdated, key.ID, "renamed") != nil {
		return err
	}
	_, err = c.RotateKey(ctx, key.ID, 0)
	if w.changes.acknowledge(err, animalstore.KeyRotated, key.ID, "renamed") != nil {
		return err
	}
	return w.changes.acknowledge(c.RevokeKey(ctx, key.ID), animalstore.KeyRevoked, key.ID, "renamed")
}

func (w *writers) awaitMore(n int64) {
	w.t.Helper()
	before := w.made.Load()
	testenv.Eventually(w.t, "more is changed", func() bool { return w.made.Load() >= before+n })
}

func urlsOf(instances []*instance) (urls []string) {
	for _, in := range instances {
		urls = append(urls, in.url)
	}
	return urls
}

// TestEventsCopy keeps copies of a store by following its events while everything
// changes and instances are killed and restarted. All copies are shown the same history, and
// in the end each equals the store.
func TestEventsCopy(t *testing.T) {
	testenv.OnlySoak(t, "kills instances 1,000 times")
	t.Parallel()
	onEachEngine(t, func(t *testing.T, database string, count int) {
		instances := startInstances(t, count, database)
		key := adminKey(t, database)
		f := follow(t, 9, urlsOf(instances), key)
		w := startWriters(t, 16, urlsOf(instances), key)
		h := newHistory(t, instances, key, f, &w.changes)
		for round := range 1000 {
			victim := instances[round%len(instances)]
			w.awaitMore(int64(60 + round%3*20))
			if round%3 == 2 {
				victim.stop()
			} else {
				victim.kill()
			}
			victim.start(t, database)
			h.check(t)
		}
		w.awaitMore(60)
		w.stop()
		h.finish(t)
	})
}

func newestEvent(t testing.TB, c *client) string {
	t.Helper()
	_, after, _ := strings.Cut(c.get(t, "/v1/events?after=latest").header.Get("Link"), "after=")
	after, _, _ = strings.Cut(after, ">")
	return after
}

// TestFollowersOutlastTimeouts: neither the 5 s limit of a request nor the 10 and 15 s
// limits of a connection end a waiting request or a silent stream.
func TestFollowersOutlastTimeouts(t *testing.T) {
	testenv.OnlySoak(t, "waits for 16 s")
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
			wantStatus(t, c.do(t, "POST", "/v1/pets", newPetBody("Rex", 7, "available")), 201, "")
			if a := <-answered; a.status != 200 || !strings.Contains(a.body, "Rex") {
				t.Errorf("got %d %s, want the event", a.status, a.body)
			}
			select {
			case e := <-arrived:
				if e.Type != animalstore.PetCreated {
					t.Errorf("got %s, want the event of the pet", e.Type)
				}
			case <-time.After(testenv.Deadline):
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
