package e2e

import (
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/testenv"
)

// tally records how many changes were sent, and how many were acknowledged, over time.
type tally struct {
	mu                 sync.Mutex
	sent, acknowledged []time.Time
}

func (c *tally) add(times *[]time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*times = append(*times, time.Now())
}

// until returns how many of the changes were made at a time.
func (c *tally) until(times *[]time.Time, at time.Time) (n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range *times {
		if !t.After(at) {
			n++
		}
	}
	return n
}

// bounds fails the test unless n lies between the changes acknowledged before a time and
// those sent so far.
func (c *tally) bounds(t *testing.T, what string, n int64, since time.Time) {
	t.Helper()
	if least, most := c.until(&c.acknowledged, since), c.until(&c.sent, time.Now()); n < least || n > most {
		t.Errorf("%s: got %d, want %d to %d", what, n, least, most)
	}
}

// readInventory returns an inventory, and the time at which its count can have begun at the
// earliest.
func readInventory(t *testing.T, c *client, query string) (counts animalstore.Inventory, since time.Time) {
	asked := time.Now()
	got, err := c.try("GET", "/v1/store/inventory"+query, "")
	if err != nil || got.status != 200 {
		t.Errorf("got %d %s, %v, want 200", got.status, got.body, err)
		return counts, asked
	}
	if err := json.Unmarshal([]byte(got.body), &counts); err != nil {
		t.Error(err)
	}
	age, err := strconv.Atoi(got.header.Get("Age"))
	if err != nil || age > 10 {
		t.Errorf("got Age %q, want at most 10", got.header.Get("Age"))
	}
	return counts, asked.Add(-time.Duration(age+1) * time.Second)
}

// TestInventoryUnderLoad: while several instances write, each inventory is as old as it
// says, and ten seconds later it is exact on every instance. However many ask, an instance
// counts the same pets once in ten seconds.
func TestInventoryUnderLoad(t *testing.T) {
	t.Parallel()
	testenv.Slow(t)
	onEachEngine(t, func(t *testing.T, database string, count int) {
		key := loadKey(t, database)
		instances := startInstances(t, count, database, withOps())
		began := time.Now()
		var created, sold tally
		stopping := make(chan struct{})
		var all sync.WaitGroup
		repeat := func(f func(n int)) {
			all.Go(func() {
				for n := 0; ; n++ {
					select {
					case <-stopping:
						return
					case <-time.After(pause):
						f(n)
					}
				}
			})
		}
		queries := []string{"", "?categoryId=0", "?categoryId=1"}
		for _, in := range instances {
			writer := newClient(t, in.server, key)
			repeat(func(n int) {
				created.add(&created.sent)
				pet := wantPet(t, writer, n%2)
				created.add(&created.acknowledged)
				sold.add(&sold.sent)
				if got, err := writer.tryUntilStored("PATCH", fmt.Sprint("/v1/pets/", pet), `{"status":"sold"}`); err != nil || got.status != 200 {
					t.Errorf("got %d %s, %v, want 200", got.status, got.body, err)
				}
				sold.add(&sold.acknowledged)
			})
			for range 3 {
				reader := newClient(t, in.server, key)
				repeat(func(n int) {
					query := queries[n%len(queries)]
					got, since := readInventory(t, reader, query)
					if query == "" {
						created.bounds(t, "pets", got.Available+got.Pending+got.Sold, since)
						sold.bounds(t, "sold pets", got.Sold, since)
					}
				})
			}
		}
		time.Sleep(13 * time.Second) // longer than a count is kept
		close(stopping)
		all.Wait()
		stopped := time.Now()
		time.Sleep(10*time.Second + 100*time.Millisecond)
		total := created.until(&created.acknowledged, stopped)
		for _, in := range instances {
			c := newClient(t, in.server, key)
			var sum animalstore.Inventory
			for _, query := range queries[1:] {
				part, _ := readInventory(t, c, query)
				sum.Available, sum.Pending, sum.Sold = sum.Available+part.Available, sum.Pending+part.Pending, sum.Sold+part.Sold
			}
			if got, _ := readInventory(t, c, ""); got != (animalstore.Inventory{Sold: total}) || sum != got {
				t.Errorf("ten seconds later: got %+v, and %+v in both categories, want %d sold", got, sum, total)
			}
			counts := in.metric("animalstore_inventory_counts_total")
			if most := float64(len(queries)) * (1 + float64(time.Since(began)/(10*time.Second))); counts > most || counts < 3 {
				t.Errorf("got %v counts in %v, want at most %v", counts, time.Since(began), most)
			}
		}
		t.Logf("%d pets", total)
	})
}

// wantPet adds a pet and returns its id.
func wantPet(t *testing.T, c *client, category int) int64 {
	got, err := c.tryUntilStored("POST", "/v1/pets", newPetBody("Rex", int64(category), "available"))
	if err != nil || got.status != 201 {
		t.Errorf("got %d %s, %v, want 201", got.status, got.body, err)
		return 0
	}
	pet, err := decodePet(got.body)
	if err != nil {
		t.Error(err)
	}
	return pet.ID
}
