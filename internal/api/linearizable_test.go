package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/keys"
	"animalstore/internal/testenv"

	"github.com/anishathalye/porcupine"
)

// TestCachedReadsAreLinearizable has clients add pets, list the newest and
// look for the next one, all at once, and asks whether there is an order of all
// these calls, each at an instant between its beginning and its end, in which
// every response is right. A page from the cache that is older than any response
// given before has no place in such an order.
func TestCachedReadsAreLinearizable(t *testing.T) {
	sqliteOnly(t, "PostgreSQL goes without the page cache")
	testenv.Slow(t)
	// Commits that wait for the disk give readers time in the middle of them. Without,
	// there are many more commits to meet.
	for _, sync := range []bool{true, false} {
		t.Run(fmt.Sprint("sync ", sync), func(t *testing.T) { checkCachedReads(t, sync) })
	}
}

func checkCachedReads(t *testing.T, sync bool) {
	t.Helper()
	s := start(t, func(with *setup) {
		with.sync = sync
		with.wrap = func(store *faultyDB) db.DB { return &slowReads{DB: store} }
	})
	secret, _ := s.makeKey(t, keys.Mint(s.env), func(k *animalstore.NewKey) {
		k.Plan, k.Limits = animalstore.PlanEnterprise, animalstore.Limits{PerMinute: 1e9, PerDay: 1e9}
	})
	h := &history{handler: s.handler, key: secret, begun: time.Now()}
	var before *herd // what the rounds so far have added
	var creates, reads int
	for deadline := time.Now().Add(time.Duration(testenv.Count(1, 60)) * time.Second); time.Now().Before(deadline); {
		ops := h.round(t, before, 40)
		model := porcupine.Model{
			Init:              func() any { return before },
			Step:              step,
			Equal:             func(a, b any) bool { return sameHerd(a.(*herd), b.(*herd)) },
			DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v: %+v", in, out) },
		}
		if result := porcupine.CheckOperationsTimeout(model, ops, time.Minute); result != porcupine.Ok {
			t.Fatalf("there is no order that explains these %d calls (%v):\n%s", len(ops), result, stale(ops))
		}
		slices.SortFunc(ops, func(a, b porcupine.Operation) int { return int(newestID(a) - newestID(b)) })
		for _, op := range ops {
			if in := op.Input.(question); in.create == "" {
				reads++
			} else {
				creates++
				_, next := step(before, op.Input, op.Output)
				before = next.(*herd)
			}
		}
	}
	t.Logf("%d pets added, %d reads", creates, reads)
	if creates == 0 || reads < creates {
		t.Errorf("%d pets added and %d reads are too few to tell", creates, reads)
	}
}

// slowReads delays every third list after it was read, so that the store changes before
// the response is sent and perhaps cached.
type slowReads struct {
	db.DB
	n atomic.Int64
}

func (d *slowReads) Pets(ctx context.Context, q db.PetQuery) ([]animalstore.Pet, error) {
	pets, err := d.DB.Pets(ctx, q)
	if d.n.Add(1)%3 == 0 {
		time.Sleep(2 * time.Millisecond)
	}
	return pets, err
}

// question is what a client asks for: one of the three.
type question struct {
	create string // a name
	list   int    // a limit
	get    int64  // an id
}

// herd is the model: an immutable linked list of pets, newest first. Nil is empty.
type herd struct {
	newest animalstore.Pet
	older  *herd
}

// sameHerd may look at the newest alone: a herd grows by ascending ids only, and
// the checker compares herds that the same calls have led to.
func sameHerd(a, b *herd) bool {
	return a == b || a != nil && b != nil && a.newest == b.newest
}

// step says whether a response, a list of pets, is right for a herd, and what
// the herd is afterwards.
func step(state, in, out any) (bool, any) {
	h, q, pets := state.(*herd), in.(question), out.([]animalstore.Pet)
	switch {
	case q.create != "":
		if len(pets) != 1 || pets[0].Name != q.create || h != nil && pets[0].ID <= h.newest.ID {
			return false, h
		}
		return true, &herd{pets[0], h}
	case q.list > 0:
		at := h
		for _, p := range pets {
			if at == nil || at.newest != p {
				return false, h
			}
			at = at.older
		}
		return len(pets) == q.list || at == nil, h
	}
	at := h
	for at != nil && at.newest.ID > q.get {
		at = at.older
	}
	if at == nil || at.newest.ID != q.get {
		return len(pets) == 0, h
	}
	return len(pets) == 1 && pets[0] == at.newest, h
}

// newestID is the highest id in a response.
func newestID(op porcupine.Operation) int64 {
	if pets := op.Output.([]animalstore.Pet); len(pets) > 0 {
		return pets[0].ID
	}
	return 0
}

// stale picks out of a history the lists that are older than a response given
// before they were asked for.
func stale(ops []porcupine.Operation) string {
	var text strings.Builder
	for _, read := range ops {
		for _, op := range ops {
			if read.Input.(question).list > 0 && op.Return < read.Call && newestID(op) > newestID(read) {
				fmt.Fprintf(&text, "asked %dns after %+v was answered with %v, %+v was answered with %v\n",
					read.Call-op.Return, op.Input, op.Output, read.Input, read.Output)
				break
			}
		}
	}
	return text.String()
}

// history calls the service and records every call with its response and times.
type history struct {
	handler http.Handler
	key     string
	begun   time.Time
	names   atomic.Int64
}

// round has each writer add the given number of pets while readers read.
func (h *history) round(t *testing.T, before *herd, each int) []porcupine.Operation {
	const writers, readers = 2, 4
	clients := make([][]porcupine.Operation, writers+readers)
	ask := func(client int, q question) []animalstore.Pet {
		op, err := h.ask(q)
		if err != nil {
			t.Errorf("%+v: %v", q, err)
		}
		op.ClientId = client
		clients[client] = append(clients[client], op)
		return op.Output.([]animalstore.Pet)
	}
	var adding, reading sync.WaitGroup
	var done atomic.Bool
	for client := range writers {
		adding.Go(func() {
			for range each {
				ask(client, question{create: fmt.Sprint("pet ", h.names.Add(1))})
				// A client that got a response must find the pet at once.
				ask(client, question{list: 2})
			}
		})
	}
	for client := writers; client < writers+readers; client++ {
		reading.Go(func() {
			next := int64(1)
			if before != nil {
				next = before.newest.ID + 1
			}
			// A client that has seen the next pet must find it in the list at once.
			for n := 0; !done.Load(); n++ {
				if pets := ask(client, question{get: next}); len(pets) > 0 || n%2 == 0 {
					if listed := ask(client, question{list: 2 + client%2}); len(listed) > 0 {
						next = max(next, listed[0].ID+1)
					}
				}
				runtime.Gosched() // or the writers would starve
			}
		})
	}
	adding.Wait()
	done.Store(true)
	reading.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return slices.Concat(clients...)
}

// ask makes one call. Its response is always a list of pets, which may be empty.
func (h *history) ask(q question) (porcupine.Operation, error) {
	method, path, body := "GET", fmt.Sprintf("/v1/pets/%d", q.get), ""
	switch {
	case q.create != "":
		method, path, body = "POST", "/v1/pets", fmt.Sprintf(`{"name":%q,"categoryId":1}`, q.create)
	case q.list > 0:
		path = fmt.Sprintf("/v1/pets?limit=%d", q.list)
		if q.list == 3 {
			path += "&status=available" // which all of them are
		}
	}
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+h.key)
	w := httptest.NewRecorder()
	op := porcupine.Operation{Input: q, Call: int64(time.Since(h.begun))}
	h.handler.ServeHTTP(w, r)
	op.Return = int64(time.Since(h.begun))

	var pets []animalstore.Pet
	var err error
	switch text := w.Body.Bytes(); {
	case w.Code == http.StatusNotFound && q.get != 0:
	case w.Code == http.StatusOK && q.list > 0:
		err = json.Unmarshal(text, &pets)
	case w.Code == http.StatusCreated, w.Code == http.StatusOK && q.get != 0:
		pets = make([]animalstore.Pet, 1)
		err = json.Unmarshal(text, &pets[0])
	default:
		err = fmt.Errorf("%d %s", w.Code, text)
	}
	op.Output = pets
	return op, err
}
