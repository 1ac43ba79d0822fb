package client_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"animalstore"
	"animalstore/client"
	"animalstore/client/clienttest"
)

// fault is one way in which a request can go wrong between client and service.
type fault func(w http.ResponseWriter, r *http.Request, service http.Handler)

// faults are all of them. Where it says "done", the service carries the request
// out and its answer does not arrive.
var faults = map[string]fault{
	"refused for now": func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Retry-After", "1")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, `{"code":"unavailable","message":"try again in a moment","status":503}`)
	},
	"refused by a proxy":    proxyPage(http.StatusServiceUnavailable, false),
	"done, proxy gives up":  proxyPage(http.StatusGatewayTimeout, true),
	"done, proxy is broken": proxyPage(http.StatusBadGateway, true),
	"cut before it is read": func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			conn.Close()
		}
	},
	"cut before it is done": func(http.ResponseWriter, *http.Request, http.Handler) { panic(http.ErrAbortHandler) },
	"done, cut before the answer": func(_ http.ResponseWriter, r *http.Request, service http.Handler) {
		service.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	},
	"done, half the headers": func(w http.ResponseWriter, r *http.Request, service http.Handler) {
		service.ServeHTTP(httptest.NewRecorder(), r)
		conn, buffer, err := http.NewResponseController(w).Hijack()
		if err == nil {
			fmt.Fprint(buffer, "HTTP/1.1 201 Created\r\nContent-Ty")
			buffer.Flush()
			conn.Close()
		}
	},
	"done, half a body": mangled(func(body []byte) ([]byte, int) { return body[:len(body)/2], len(body) }),
	"done, too long a length": mangled(func(body []byte) ([]byte, int) {
		return body, len(body) + 7
	}),
	"done, too short a length": mangled(func(body []byte) ([]byte, int) {
		short := body[:max(0, len(body)-3)]
		return short, len(short)
	}),
	"done, an empty body": mangled(func([]byte) ([]byte, int) { return nil, 0 }),
}

// proxyPage is what a proxy answers that cannot reach the service or no longer
// waits for it.
func proxyPage(status int, done bool) fault {
	return func(w http.ResponseWriter, r *http.Request, service http.Handler) {
		if done {
			service.ServeHTTP(httptest.NewRecorder(), r)
		}
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(status)
		fmt.Fprint(w, "<html><h1>Sorry</h1></html>")
	}
}

// mangled sends another body than the service did, with another length.
func mangled(change func(body []byte) ([]byte, int)) fault {
	return func(w http.ResponseWriter, r *http.Request, service http.Handler) {
		answer := httptest.NewRecorder()
		service.ServeHTTP(answer, r)
		maps.Copy(w.Header(), answer.Header())
		if answer.Code == http.StatusNoContent { // has none to mangle
			panic(http.ErrAbortHandler)
		}
		body, length := change(answer.Body.Bytes())
		w.Header().Set("Content-Length", strconv.Itoa(length))
		w.WriteHeader(answer.Code)
		w.Write(body)
		if length > len(body) {
			http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
	}
}

// TestOneFault meets every operation that changes something with every fault,
// once: it is done exactly once and reported as done, or the caller is told that
// nobody knows.
func TestOneFault(t *testing.T) {
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var armed bool
				store := clienttest.New(t, clienttest.InMemory(), clienttest.WithMiddleware(func(service http.Handler) http.Handler {
					return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						if armed {
							armed = false
							fault(w, r, service)
							return
						}
						service.ServeHTTP(w, r)
					})
				}))
				w := &world{t: t, clean: store.Client}
				for _, change := range changes {
					w.prepare()
					armed = true
					err := change.make(w, store.Client)
					if armed {
						t.Fatalf("%s: the fault did not happen", change.name)
					}
					w.verify(change, err)
					if err != nil && (!change.mayFail || name == "refused for now") {
						t.Errorf("%s: got %v, want success after one fault", change.name, err)
					}
				}
			})
		})
	}
}

// TestManyFaults is a storm of faults over many goroutines. What the client
// reported is compared with what the store has.
func TestManyFaults(t *testing.T) {
	for _, inMemory := range []bool{true, false} {
		t.Run(fmt.Sprintf("in memory %t", inMemory), func(t *testing.T) {
			if inMemory { // in fake time, with the waits of production
				synctest.Test(t, func(t *testing.T) { storm(t, often(400, 4_000), clienttest.InMemory()) })
			} else {
				storm(t, often(100, 2_000), clienttest.WithClientOptions(client.WithBackoff(time.Millisecond, 10*time.Millisecond)))
			}
		})
	}
}

func storm(t *testing.T, calls int, options ...clienttest.Option) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, 0))
	chance := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return random.IntN(n)
	}
	names := slices.Sorted(maps.Keys(faults))
	store := clienttest.New(t, append(options, clienttest.WithMiddleware(func(service http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.UserAgent() == "clean" || chance(2) == 0 {
				service.ServeHTTP(w, r)
				return
			}
			faults[names[chance(len(names))]](w, r, service)
		})
	}))...)
	clean := store.NewClient(store.Key, client.WithUserAgent("clean"))
	var results sync.Map // of an outcome each
	err := inParallel(8, calls, func(i int) error {
		change := changes[chance(len(changes))]
		w := &world{t: t, clean: clean, number: i}
		w.prepare()
		err := change.make(w, store.Client)
		w.verify(change, err)
		outcome := "done"
		if errors.Is(err, client.ErrOutcomeUnknown) {
			outcome = "not known"
		} else if err != nil {
			outcome = "not done"
		}
		count, _ := results.LoadOrStore(change.name+" "+outcome, new(tallyCount))
		count.(*tallyCount).add()
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	var summary bytes.Buffer
	results.Range(func(what, n any) bool {
		fmt.Fprintf(&summary, "\n%s: %d", what, n.(*tallyCount).n)
		return true
	})
	t.Logf("%d calls:%s", calls, &summary)
}

type tallyCount struct {
	mu sync.Mutex
	n  int
}

func (c *tallyCount) add() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
}

// world is what one change is made in, with names of its own. clean meets no
// faults.
type world struct {
	t      *testing.T
	clean  *client.Client
	number int
	name   string
	pet    animalstore.Pet
	order  animalstore.Order
	added  animalstore.Pet
	placed animalstore.Order
}

func (w *world) prepare() {
	w.number++
	w.name = fmt.Sprintf("%s %d", w.t.Name(), w.number)
	w.name = w.name[max(0, len(w.name)-100):]
	var err error
	if w.pet, err = w.clean.CreatePet(w.t.Context(), animalstore.NewPet{Name: "prepared", CategoryID: 1}); err != nil {
		w.t.Error(err)
	}
	ordered, err := w.clean.CreatePet(w.t.Context(), animalstore.NewPet{Name: "ordered", CategoryID: 1})
	if err != nil {
		w.t.Error(err)
	}
	if w.order, err = w.clean.PlaceOrder(w.t.Context(), ordered.ID); err != nil {
		w.t.Error(err)
	}
}

// change is an operation that changes something, and how often it shows in the
// store that it was made.
type change struct {
	name    string
	mayFail bool // one fault can be enough
	make    func(w *world, c *client.Client) error
	times   func(w *world) int
}

var changes = []change{
	{"createPet", false,
		func(w *world, c *client.Client) (err error) {
			w.added, err = c.CreatePet(w.t.Context(), animalstore.NewPet{Name: w.name, CategoryID: 2})
			return err
		},
		func(w *world) (n int) {
			for _, p := range collect(w.t, w.clean.ListPets(w.t.Context(), client.PetQuery{CategoryID: new(int64(2))})) {
				if p.Name == w.name {
					n++
					if w.added.ID != 0 && w.added != p {
						w.t.Errorf("createPet: got %+v, want %+v", w.added, p)
					}
				}
			}
			return n
		}},
	{"placeOrder", false,
		func(w *world, c *client.Client) (err error) {
			w.placed, err = c.PlaceOrder(w.t.Context(), w.pet.ID)
			return err
		},
		func(w *world) int {
			orders := collect(w.t, w.clean.ListOrders(w.t.Context(), client.OrderQuery{PetID: w.pet.ID}))
			if w.placed.ID != 0 && (len(orders) == 0 || orders[0] != w.placed) {
				w.t.Errorf("placeOrder: got %+v, want %+v", w.placed, orders)
			}
			return len(orders)
		}},
	{"updatePet", false,
		func(w *world, c *client.Client) error {
			_, err := c.UpdatePet(w.t.Context(), w.pet.ID, client.PetPatch{Name: &w.name})
			return err
		},
		func(w *world) int {
			pet, err := w.clean.FindPet(w.t.Context(), w.pet.ID)
			return once(w.t, err, pet.Name == w.name)
		}},
	{"updatePet if it matches", true,
		func(w *world, c *client.Client) error {
			var m client.Meta
			if _, err := w.clean.GetPet(w.t.Context(), w.pet.ID, client.ReadMeta(&m)); err != nil {
				return err
			}
			_, err := c.UpdatePet(w.t.Context(), w.pet.ID, client.PetPatch{Name: &w.name}, client.IfMatch(m.ETag))
			return err
		},
		func(w *world) int {
			pet, err := w.clean.FindPet(w.t.Context(), w.pet.ID)
			return once(w.t, err, pet.Name == w.name)
		}},
	{"deletePet", false,
		func(w *world, c *client.Client) error { return c.DeletePet(w.t.Context(), w.pet.ID) },
		func(w *world) int {
			_, err := w.clean.FindPet(w.t.Context(), w.pet.ID)
			var coded *animalstore.Error
			if errors.As(err, &coded) && coded.Code == animalstore.PetNotFound {
				return 1
			}
			return once(w.t, err, false)
		}},
	{"updateOrder", true,
		func(w *world, c *client.Client) error {
			_, err := c.UpdateOrder(w.t.Context(), w.order.ID, animalstore.OrderApproved)
			return err
		},
		func(w *world) int {
			order, err := w.clean.GetOrder(w.t.Context(), w.order.ID)
			return once(w.t, err, order.Status == animalstore.OrderApproved)
		}},
	{"putCategory", false,
		func(w *world, c *client.Client) error {
			_, err := c.PutCategory(w.t.Context(), animalstore.Category{ID: int64(100 + w.number), Name: w.name})
			return err
		},
		func(w *world) int {
			category, err := w.clean.GetCategory(w.t.Context(), int64(100+w.number))
			var coded *animalstore.Error
			if errors.As(err, &coded) && coded.Code == animalstore.CategoryNotFound {
				return 0
			}
			return once(w.t, err, category.Name == w.name)
		}},
	{"createKey", true,
		func(w *world, c *client.Client) error {
			key, err := c.CreateKey(w.t.Context(), client.NewKey{Name: w.name})
			if err == nil && key.Secret == "" {
				w.t.Errorf("createKey: got %v without a secret", key)
			}
			return err
		},
		func(w *world) (n int) {
			for _, k := range collect(w.t, w.clean.ListKeys(w.t.Context(), client.PageQuery{})) {
				if k.Name == w.name {
					n++
				}
			}
			return n
		}},
}

func once(t *testing.T, err error, done bool) int {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
	if done {
		return 1
	}
	return 0
}

// verify holds what was reported of a change against the store.
func (w *world) verify(c change, err error) {
	w.t.Helper()
	got := c.times(w)
	switch {
	case err == nil && got != 1:
		w.t.Errorf("%s: reported as done, and the store has it %d times, want once", c.name, got)
	case errors.Is(err, client.ErrOutcomeUnknown) && got > 1:
		w.t.Errorf("%s: the store has it %d times, want once at most", c.name, got)
	case err != nil && !errors.Is(err, client.ErrOutcomeUnknown) && got != 0:
		w.t.Errorf("%s: reported as not done (%v), and the store has it %d times, want none", c.name, err, got)
	}
}
