//go:build unix

package api_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/keys"
	"animalstore/internal/server"
	"animalstore/internal/testenv"
)

// TestFailuresOfAFleet_Slow: every server shows what failed on any of them. That it takes two
// seconds follows from TestFailuresAreSaved: here the machine decides how long it takes.
func TestFailuresOfAFleet_Slow(t *testing.T) {
	database := postgresEngine.newDatabase(t)
	const servers = 3
	var urls, secrets []string // a key for each server: of a key and code, one a second is kept
	for i := range servers {
		s, err := server.New(t.Context(), server.Config{Database: database, Listen: "127.0.0.1:0"})
		if err != nil {
			t.Fatal(err)
		}
		secret := keys.Mint(animalstore.Production)
		key := animalstore.NewKey{Name: "fleet", Plan: animalstore.PlanEnterprise, Limits: animalstore.Limits{PerMinute: 1 << 40, PerDay: 1 << 40}, Permissions: everything, Environment: animalstore.Production}
		if _, err := s.DB().CreateKey(t.Context(), key, keys.Hash(secret), animalstore.At(time.Now())); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan error)
		go func() { done <- s.Run(ctx) }()
		t.Cleanup(func() {
			stop()
			if err := <-done; err != nil {
				t.Errorf("stop server %d: %v", i, err)
			}
		})
		urls, secrets = append(urls, s.URL()), append(secrets, secret)
	}
	get := func(server int, path, id string) response {
		c := &service{url: urls[server], owner: secrets[server], client: http.DefaultClient}
		return c.do(t, with(call{path: path}, "X-Request-Id", id))
	}
	want := map[string]string{} // by request id
	for server := range servers {
		for path, code := range map[string]string{
			"/v1/pets/9": "404 pet_not_found GET /v1/pets/{petId} /v1/pets/9", "/v1/nothing": "404 route_not_found GET null null",
			"/v1/pets?limit=0": "400 invalid_parameter GET /v1/pets /v1/pets", "/v1/store/orders?cursor=x": "400 invalid_cursor GET /v1/store/orders /v1/store/orders",
		} {
			id := fmt.Sprint("fleet-", len(want))
			want[id] = id + " " + code
			get(server, path, id)
		}
	}
	for server := range servers {
		var all []animalstore.Failure
		testenv.Eventually(t, fmt.Sprintf("all failures on server %d", server), func() bool {
			all = read[[]animalstore.Failure](t, get(server, "/v1/failures?limit=100", "list"), http.StatusOK)
			return len(all) >= len(want)
		})
		if len(all) != len(want) {
			t.Errorf("server %d: got %d failures, want %d", server, len(all), len(want))
		}
		for _, f := range all {
			if describe(f) != want[f.RequestID] {
				t.Errorf("server %d: got %s, want %s", server, describe(f), want[f.RequestID])
			}
		}
	}
}
