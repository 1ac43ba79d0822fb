//go:build unix

package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/keys"
	"animalstore/internal/server"
	"animalstore/internal/testenv"
)

// TestFailuresOfAFleet: every server shows within two seconds what failed on any of them.
func TestFailuresOfAFleet(t *testing.T) {
	testenv.Slow(t)
	engine = postgresEngine
	t.Cleanup(func() { engine = sqliteEngine })
	database := engine.newDatabase(t)
	const servers = 3
	var urls []string
	secret := keys.Mint(animalstore.Production)
	for i := range servers {
		s, err := server.New(t.Context(), server.Config{Database: database, Listen: "127.0.0.1:0"})
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			limits := animalstore.Limits{PerMinute: 1 << 40, PerDay: 1 << 40}
			key := animalstore.NewKey{Name: "fleet", Plan: animalstore.PlanEnterprise, Limits: limits, Permissions: everything, Environment: animalstore.Production}
			if _, err := s.DB().CreateKey(t.Context(), key, keys.Hash(secret), animalstore.At(time.Now())); err != nil {
				t.Fatal(err)
			}
		}
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan error)
		go func() { done <- s.Run(ctx) }()
		t.Cleanup(func() {
			stop()
			if err := <-done; err != nil {
				t.Errorf("stop a server: %v", err)
			}
		})
		urls = append(urls, s.URL())
	}
	get := func(url, id string) (int, []animalstore.Failure) {
		req, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+secret)
		if id != "" {
			req.Header.Set("X-Request-Id", id)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		var all []animalstore.Failure
		if res.StatusCode == http.StatusOK {
			if err := json.NewDecoder(res.Body).Decode(&all); err != nil {
				t.Fatal(err)
			}
		}
		return res.StatusCode, all
	}
	paths := map[string]string{"/v1/pets/9": "pet_not_found", "/v1/nothing": "route_not_found", "/v1/pets?limit=0": "invalid_parameter", "/v1/store/orders?cursor=x": "invalid_cursor"}
	sent := map[string]time.Time{} // by request id
	n := 0
	for path := range paths {
		for _, url := range urls {
			id := fmt.Sprint("fleet-", n)
			n++
			if status, _ := get(url+path, id); status < 400 {
				t.Fatalf("%s: got %d, want an error", path, status)
			}
			sent[id] = time.Now()
			for i, other := range urls {
				var found []animalstore.Failure
				testenv.Eventually(t, id+" is shown", func() bool {
					_, found = get(other+"/v1/failures?requestId="+id, "")
					return len(found) == 1
				})
				if took := time.Since(sent[id]); took > 2*time.Second {
					t.Errorf("%s: shown by server %d after %v, want at most 2 s", id, i, took)
				}
				if string(found[0].Code) != paths[path] {
					t.Errorf("%s: got %+v, want %s", id, found[0], paths[path])
				}
			}
			// Of a key and code, one a second is kept.
			testenv.Eventually(t, "the next second", func() bool { return time.Now().Unix() > sent[id].Unix() })
		}
	}
	all := 0
	for _, url := range urls {
		_, list := get(url+"/v1/failures?limit=100", "")
		all += len(list)
	}
	if all != servers*n {
		t.Errorf("got %d failures on all servers, want %d", all, servers*n)
	}
}
