package client_test

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"animalstore"
	"animalstore/client"
	"animalstore/client/clienttest"
)

// tally counts the responses of a service by their status.
type tally struct {
	mu    sync.Mutex
	count map[int]int
	all   int
}

func (a *tally) middleware(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		noted := &noting{ResponseWriter: w, status: http.StatusOK}
		h.ServeHTTP(noted, r)
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.count == nil {
			a.count = map[int]int{}
		}
		a.count[noted.status]++
		a.all++
	})
}

// of returns the number of responses with this status.
func (a *tally) of(status int) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.count[status]
}

func (a *tally) total() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.all
}

type noting struct {
	http.ResponseWriter
	status int
}

func (n *noting) WriteHeader(status int) {
	n.status = status
	n.ResponseWriter.WriteHeader(status)
}

func (n *noting) Unwrap() http.ResponseWriter { return n.ResponseWriter }

// perMinute is a plan with n requests a minute, and plenty a day.
func perMinute(n int64) clienttest.Option {
	return clienttest.WithPlan(animalstore.PlanEnterprise, animalstore.Limits{PerMinute: n, PerDay: 1 << 40})
}

// inParallel runs f n times in the given number of goroutines and returns the
// errors.
func inParallel(goroutines, n int, f func(i int) error) error {
	var next atomic.Int64
	errs := make([]error, goroutines)
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := f(i); err != nil {
					errs[g] = fmt.Errorf("call %d: %w", i, err)
					return
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// wantCode fails the test unless err has this code.
func wantCode(t testing.TB, err error, want animalstore.Code) {
	t.Helper()
	var coded *animalstore.Error
	if !errors.As(err, &coded) || coded.Code != want {
		t.Errorf("got error %v, want code %s", err, want)
	}
}

// add adds a pet to the store.
func add(t testing.TB, c *client.Client, name string) animalstore.Pet {
	t.Helper()
	pet, err := c.CreatePet(t.Context(), animalstore.NewPet{Name: name, CategoryID: 1})
	if err != nil {
		t.Fatal(err)
	}
	return pet
}

func readCloser(body string) io.ReadCloser { return io.NopCloser(strings.NewReader(body)) }

// collect returns all entries of a list.
func collect[T any](t testing.TB, list iter.Seq2[T, error]) (all []T) {
	t.Helper()
	for entry, err := range list {
		if err != nil {
			t.Error(err)
			break
		}
		all = append(all, entry)
	}
	return all
}
