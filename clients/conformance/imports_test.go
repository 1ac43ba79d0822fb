package conformance

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync/atomic"
	"testing"

	"animalstore"
	"animalstore/client"
)

func TestImports(t *testing.T)      { runImports(t, startGo(t)) }
func TestImports_Slow(t *testing.T) { withEachClient(t, runImports) }

// runImports: however an import is interrupted, the next one returns all of its pets in their
// order, and says how many are new.
func runImports(t *testing.T, a *adapter) {
	type counts struct{ Added, Existing int }
	for _, test := range []struct {
		what     string
		lost     int64 // the batch whose response is lost, of those of all runs
		attempts float64
		want     []counts // of each run; none if it fails
	}{
		{"interrupted", 2, 1, []counts{{}, {50, 200}, {0, 250}}},
		{"sent again", 1, 2, []counts{{250, 0}, {0, 250}}},
		{"continued, then sent again", 4, 2, []counts{{250, 0}, {0, 250}}},
	} {
		t.Run(test.what, func(t *testing.T) {
			direct := startReal(t)
			s := &scenario{Client: map[string]any{"apiKey": ownerKey, "baseURL": loseBatch(t, direct, test.lost), "maxAttempts": test.attempts}}
			var given []any
			for i := range 250 {
				given = append(given, map[string]any{"name": fmt.Sprint("Rex ", i), "categoryId": 7})
			}
			for range test.want {
				s.Steps = append(s.Steps, step{Call: "importPets", Args: map[string]any{"pets": given}})
			}
			replies := s.steps(t, a, places{}).replies
			stored := storedPets(t, direct)
			for i, want := range test.want {
				reply := asObject(replies[i])
				if want == (counts{}) {
					if asObject(reply["error"])["outcomeUnknown"] != true {
						t.Errorf("run %d: got %v, want an error with an unknown outcome", i+1, reply)
					}
					continue
				}
				var got struct {
					counts
					Pets []animalstore.Pet
				}
				text, _ := json.Marshal(reply["result"])
				if err := json.Unmarshal(text, &got); err != nil || got.counts != want {
					t.Errorf("run %d: got %+v, %v, %v, want %+v", i+1, got.counts, err, reply["error"], want)
				}
				if !slices.Equal(got.Pets, stored) {
					t.Errorf("run %d: got pets %+v, want %+v", i+1, got.Pets, stored)
				}
			}
		})
	}
}

// loseBatch starts a proxy that forwards a batch, and closes the connection instead of
// responding.
func loseBatch(t *testing.T, target string, lost int64) string {
	t.Helper()
	to, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	proxy, batches := httputil.NewSingleHostReverseProxy(to), atomic.Int64{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/pets/batch" || batches.Add(1) != lost {
			// A client can't send a request again on its own if every connection is new.
			w.Header().Set("Connection", "close")
			proxy.ServeHTTP(w, r)
			return
		}
		proxy.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// storedPets are the pets of a store, oldest first.
func storedPets(t *testing.T, url string) (pets []animalstore.Pet) {
	t.Helper()
	c, err := client.New(url, ownerKey)
	if err != nil {
		t.Fatal(err)
	}
	for pet, err := range c.ListPets(t.Context(), animalstore.PetQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		pets = append(pets, pet)
	}
	slices.Reverse(pets)
	return pets
}
