package main

import (
	"bytes"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"sync"
	"testing"

	"animalstore"
	"animalstore/client"
	"animalstore/client/clienttest"
	"animalstore/internal/terminal"
)

// TestListSendsFewRequests: a list takes as few requests as possible, because each
// counts against the key's limits.
func TestListSendsFewRequests(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	server := clienttest.New(t, clienttest.WithMiddleware(func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				mu.Lock()
				asked = append(asked, r.URL.Query().Get("limit"))
				mu.Unlock()
			}
			h.ServeHTTP(w, r)
		})
	}))
	var adding sync.WaitGroup
	for range 50 {
		adding.Go(func() {
			for range 5 {
				if _, err := server.Client.CreatePet(t.Context(), animalstore.NewPet{Name: "Rex", CategoryID: 1}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	adding.Wait()
	onTerminal := terminal.Screen{Terminal: true}
	tests := []struct {
		flags  listFlags
		screen terminal.Screen
		asked  string
		rows   int
	}{
		{listFlags{limit: 20}, terminal.Screen{}, "20", 20},
		{listFlags{limit: 20}, onTerminal, "20", 21},
		{listFlags{limit: 200}, terminal.Screen{}, "100 100", 200},
		{listFlags{limit: 1000}, onTerminal, "100 100 100", 251},
		{listFlags{limit: 20, all: true}, terminal.Screen{}, "100 100 100", 250},
	}
	for _, test := range tests {
		name := fmt.Sprintf("limit %d, all %t, terminal %t", test.flags.limit, test.flags.all, test.screen.Terminal)
		asked = nil
		var out bytes.Buffer
		p := &terminal.Printer{Out: &out, Notes: io.Discard, Screen: test.screen}
		err := pets.printPages(p, &test.flags, pets.columns, func(pageSize int) iter.Seq2[animalstore.Pet, error] {
			return server.Client.ListPets(t.Context(), client.PetQuery{PageSize: pageSize})
		})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := strings.Join(asked, " "); got != test.asked {
			t.Errorf("%s: got requests with limits %s, want %s", name, got, test.asked)
		}
		if got := strings.Count(out.String(), "\n"); got != test.rows {
			t.Errorf("%s: got %d lines, want %d", name, got, test.rows)
		}
	}
}
