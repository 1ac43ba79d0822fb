package client_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"animalstore"
	"animalstore/client"
	"animalstore/client/clienttest"
)

// catalogue returns n pets, most of which are equal.
func catalogue(n int) []animalstore.NewPet {
	pets := make([]animalstore.NewPet, n)
	for i := range pets {
		pets[i] = animalstore.NewPet{Name: "goldfish", CategoryID: int64(i % 2)}
	}
	return pets
}

func countPets(t *testing.T, c *client.Client) int {
	t.Helper()
	return len(collect(t, c.ListPets(t.Context(), animalstore.PetQuery{})))
}

func TestImportPets(t *testing.T) {
	var responses tally
	c := clienttest.New(t, clienttest.WithMiddleware(responses.middleware)).Client
	pets := catalogue(250)
	changed := catalogue(250)
	changed[249].Name = "guppy"
	for _, test := range []struct {
		what string
		pets []animalstore.NewPet
		salt string
		want client.PetImport
	}{
		{"the first time", pets, "", client.PetImport{Added: 250}},
		{"again", pets, "", client.PetImport{Existing: 250}},
		{"changed", changed, "", client.PetImport{Added: 250}},
		{"with a salt", pets, "x", client.PetImport{Added: 250}},
		{"only a part", pets[:100], "", client.PetImport{Added: 100}},
		{"none", nil, "", client.PetImport{}},
	} {
		stored, requests := countPets(t, c), responses.of(201)
		var progress []client.PetImport
		got, err := c.ImportPets(t.Context(), test.pets, client.ImportOptions{Salt: test.salt, OnBatch: func(p client.PetImport) { progress = append(progress, p) }})
		checkImported(t, c, test.what, got, test.pets)
		if got.Pets = nil; err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: got %+v, %v, want %+v", test.what, got, err, test.want)
		}
		batches := (len(test.pets) + 99) / 100
		if added := countPets(t, c) - stored; added != test.want.Added || responses.of(201)-requests != batches || len(progress) != batches {
			t.Errorf("%s: %d were added in %d requests with progress %+v, want %d in %d", test.what, added, responses.of(201)-requests, progress, test.want.Added, batches)
		}
	}
}

// checkImported checks that the pets of an import are the first of those that were given, as
// the store has them.
func checkImported(t *testing.T, c *client.Client, what string, got client.PetImport, given []animalstore.NewPet) {
	t.Helper()
	stored := map[int64]animalstore.Pet{}
	for _, pet := range collect(t, c.ListPets(t.Context(), animalstore.PetQuery{})) {
		stored[pet.ID] = pet
	}
	if len(got.Pets) != got.Added+got.Existing {
		t.Errorf("%s: got %d pets, but %d were added and %d existed", what, len(got.Pets), got.Added, got.Existing)
	}
	for i, pet := range got.Pets {
		ordered := i == 0 || got.Pets[i-1].ID < pet.ID
		if pet != stored[pet.ID] || pet.Name != given[i].Name || pet.CategoryID != given[i].CategoryID || !ordered {
			t.Fatalf("%s: pet %d of the list is %+v, and in the store %+v, want %+v", what, i, pet, stored[pet.ID], given[i])
		}
	}
}

// TestInterruptedImport: however an import ends, its result is true, and the next run adds
// the rest.
func TestInterruptedImport(t *testing.T) {
	for _, test := range []struct {
		what        string
		batch       int64 // that fails, of those of both runs
		stored      bool  // before the response is lost
		attempts    int
		first, next client.PetImport
	}{
		{"not stored", 2, false, 1, client.PetImport{Added: 100, Unknown: 100}, client.PetImport{Existing: 100, Added: 150}},
		{"response lost", 2, true, 1, client.PetImport{Added: 100, Unknown: 100}, client.PetImport{Existing: 200, Added: 50}},
		{"response lost, then sent again", 1, true, 2, client.PetImport{Added: 250}, client.PetImport{Existing: 250}},
		{"the first response of the next run lost", 4, true, 2, client.PetImport{Added: 250}, client.PetImport{Existing: 250}},
	} {
		t.Run(test.what, func(t *testing.T) {
			var batches atomic.Int64
			store := clienttest.New(t, clienttest.WithMiddleware(func(h http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path != "/v1/pets/batch" || batches.Add(1) != test.batch {
						h.ServeHTTP(w, r)
						return
					}
					if test.stored {
						h.ServeHTTP(discardedResponse{}, r)
					}
					panic(http.ErrAbortHandler)
				})
			}))
			// A new connection for each request keeps the transport from sending it again.
			hc := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			c := store.NewClient(store.Key, client.WithHTTPClient(hc), client.WithMaxAttempts(test.attempts), client.WithBackoff(time.Millisecond, time.Millisecond))
			got, err := c.ImportPets(t.Context(), catalogue(250), client.ImportOptions{})
			checkImported(t, c, "the first run", got, catalogue(250))
			if got.Pets = nil; !reflect.DeepEqual(got, test.first) || errors.Is(err, client.ErrOutcomeUnknown) != (got.Unknown > 0) {
				t.Errorf("got %+v, %v, want %+v", got, err, test.first)
			}
			got, err = c.ImportPets(t.Context(), catalogue(250), client.ImportOptions{})
			checkImported(t, c, "the next run", got, catalogue(250))
			if got.Pets = nil; err != nil || !reflect.DeepEqual(got, test.next) {
				t.Errorf("the next run: got %+v, %v, want %+v", got, err, test.next)
			}
			if n := countPets(t, c); n != 250 {
				t.Errorf("got %d pets, want 250", n)
			}
		})
	}
}

// discardedResponse is a response that never reaches the client.
type discardedResponse struct{}

func (discardedResponse) Header() http.Header         { return http.Header{} }
func (discardedResponse) Write(p []byte) (int, error) { return len(p), nil }
func (discardedResponse) WriteHeader(int)             {}

// TestImportSum: the Idempotency-Keys of an import have the sum of its JSON, as in our other
// clients.
func TestImportSum(t *testing.T) {
	c, s := scriptedClient(t, []reply{response(201, `{"pets":[`+petJSON+`,`+petJSON+`]}`)})
	pets := []animalstore.NewPet{{Name: "Rex \u2028<&> \"", CategoryID: 1}, {Name: "Mia", CategoryID: -1 << 63, Status: animalstore.PetSold}}
	if _, err := c.ImportPets(t.Context(), pets, client.ImportOptions{Salt: `a"b`}); err != nil {
		t.Fatal(err)
	}
	text, err := animalstore.EncodeJSON([]any{`a"b`, pets})
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("import-%x-1-2", sha256.Sum256(text))
	if got := s.sent[0].Header.Get("Idempotency-Key"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
