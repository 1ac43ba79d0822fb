package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"animalstore"
	goclient "animalstore/client"
)

// writers change a store in every way there is, at several instances.
type writers struct {
	t       *testing.T
	stopped context.Context
	stop    func()
	made    atomic.Int64 // changes that were acknowledged
	trouble atomic.Int64 // attempts that failed
}

// startWriters starts n of them.
func startWriters(t *testing.T, n int, urls []string, key string) *writers {
	ctx, cancel := context.WithCancel(context.Background())
	w := &writers{t: t, stopped: ctx}
	var wg sync.WaitGroup
	w.stop = func() { cancel(); wg.Wait() }
	t.Cleanup(w.stop)
	for i := range n {
		c, err := goclient.New(urls[i%len(urls)], key, goclient.WithBackoff(10*time.Millisecond, 50*time.Millisecond), goclient.WithMaxAttempts(3),
			goclient.WithOnWait(func(goclient.Wait) { w.trouble.Add(1) }))
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			defer c.CloseIdleConnections()
			random := rand.New(rand.NewPCG(uint64(i), 0))
			var mine []int64 // pets that this writer made
			for n := 0; ctx.Err() == nil; n++ {
				w.note(w.change(c, random, &mine, n))
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
	} else if w.stopped.Err() == nil {
		w.trouble.Add(1)
	}
}

// change makes one change, of which the next depends on how this one went. Many of
// them are refused, because another writer was faster.
func (w *writers) change(c *goclient.Client, random *rand.Rand, mine *[]int64, n int) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	pick := int64(random.IntN(200) + 1) // anybody's
	if len(*mine) > 0 && random.IntN(2) == 0 {
		pick = (*mine)[random.IntN(len(*mine))]
	}
	switch kind := random.IntN(100); {
	case kind < 35:
		pet, err := c.CreatePet(ctx, animalstore.NewPet{Name: fmt.Sprintf("pet %d <&> \u2028 ü", n), CategoryID: int64(random.IntN(40))})
		if err == nil {
			*mine = append(*mine, pet.ID)
		}
		return err
	case kind < 55:
		_, err := c.UpdatePet(ctx, pick, animalstore.PetPatch{Name: new(fmt.Sprintf("renamed %d", n))})
		return err
	case kind < 63:
		return c.DeletePet(ctx, pick)
	case kind < 80:
		order, err := c.PlaceOrder(ctx, pick)
		if err == nil {
			next := []animalstore.OrderStatus{animalstore.OrderApproved, animalstore.OrderCancelled}[random.IntN(2)]
			_, err = c.UpdateOrder(ctx, order.ID, animalstore.OrderPatch{Status: &next})
		}
		return err
	case kind < 90:
		_, err := c.PutCategory(ctx, animalstore.Category{ID: int64(random.IntN(40)), Name: fmt.Sprint("category ", n)})
		return err
	default:
		return changeKeys(ctx, c, n)
	}
}

func changeKeys(ctx context.Context, c *goclient.Client, n int) error {
	key, err := c.CreateKey(ctx, goclient.NewKey{Name: fmt.Sprint("key ", n)})
	if err != nil {
		return err
	}
	if _, err := c.UpdateKey(ctx, key.ID, animalstore.KeyPatch{Name: new("renamed")}); err != nil {
		return err
	}
	if _, err := c.RotateKey(ctx, key.ID, 0); err != nil {
		return err
	}
	return c.RevokeKey(ctx, key.ID)
}

func (w *writers) awaitMore(n int64) {
	w.t.Helper()
	before := w.made.Load()
	eventually(w.t, time.Minute, "more is changed", func() bool { return w.made.Load() >= before+n })
}

func urlsOf(instances []*instance) (urls []string) {
	for _, in := range instances {
		urls = append(urls, in.url)
	}
	return urls
}

// adminKey creates a key that may do everything, as often as it likes.
func adminKey(t testing.TB, database string) string {
	t.Helper()
	return newKey(t, database, "--name", "admin", "--permissions", "read,write,admin", "--plan", "enterprise", "--per-minute", "1000000000", "--per-day", "1000000000")
}

// TestEventsCopy keeps copies of a store by following its events while everything
// changes and instances are killed and restarted. At the end each copy is the store.
func TestEventsCopy(t *testing.T) {
	onlyForRelease(t, "a load that takes long")
	t.Parallel()
	onEachEngine(t, func(t *testing.T, database string, count int) {
		rounds, copies, changing := 3, 4, 8
		if soak {
			rounds, copies, changing = 1000, 8, 16
		}
		instances := startInstances(t, count, database)
		key := adminKey(t, database)
		f := follow(t, copies, urlsOf(instances), key)
		w := startWriters(t, changing, urlsOf(instances), key)
		for round := range rounds {
			victim := instances[round%len(instances)]
			w.awaitMore(int64(60 + round%3*20))
			if round%3 == 2 {
				victim.signal(syscall.SIGTERM)
				if code := victim.wait(); code != 0 {
					t.Errorf("exit code %d after SIGTERM, want 0.\n%s", code, victim.output())
				}
			} else {
				victim.kill()
			}
			victim.start(t, database)
		}
		w.awaitMore(60)
		w.stop()
		f.check(newClient(t, instances[0].server, key))
		if w.trouble.Load() == 0 {
			t.Error("no attempt failed: the test proves nothing")
		}
	})
}

// TestEventsCopyFailover is TestEventsCopy where PostgreSQL itself is killed, and its
// standby takes over.
func TestEventsCopyFailover(t *testing.T) {
	if !soak {
		t.Skip("takes long: make soak has it")
	}
	t.Parallel()
	const rounds, copies, changing = 100, 8, 16
	primary, standby, database := startPair(t)
	instances := startInstances(t, 3, database)
	key := adminKey(t, database)
	f := follow(t, copies, urlsOf(instances), key)
	w := startWriters(t, changing, urlsOf(instances), key)
	for round := range rounds {
		w.awaitMore(int64(100 + round%3*20))
		primary.Kill()
		standby.Promote(t)
		w.awaitMore(60)
		primary.Follow(t, standby)
		primary, standby = standby, primary
	}
	w.awaitMore(60)
	w.stop()
	f.check(newClient(t, instances[0].server, key))
	if w.trouble.Load() == 0 {
		t.Error("no attempt failed: the test proves nothing")
	}
	for _, in := range instances {
		in.mustStillRun(t)
	}
}
