package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"animalstore/client"
	"animalstore/internal/terminal"
)

// failuresServer responds with the given pages of failures, by their ids, one after the
// other, and calls end if it is asked for more.
func failuresServer(t *testing.T, end func(), pages ...[]int) *client.Client {
	t.Helper()
	n := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n == len(pages) {
			end()
			<-r.Context().Done() // the client has noticed
			return
		}
		var all []string
		for _, id := range pages[n] {
			all = append(all, fmt.Sprintf(`{"id":%d,"time":"2026-11-15T09:24:05.120Z","requestId":"r%d","keyId":2,"method":"GET","route":null,"path":null,"status":404,"code":"route_not_found","message":"no such\u0007path","durationMs":3}`, id, id))
		}
		n++
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, "["+strings.Join(all, ",")+"]")
	}))
	t.Cleanup(server.Close)
	c, err := client.New(server.URL, "a-key-of-somebody")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestFollowFailures: each new failure is printed once, oldest first. Without --since,
// those that were there before aren't.
func TestFollowFailures(t *testing.T) {
	for _, test := range []struct {
		flags failureFlags
		pages [][]int
		want  []int
	}{
		{failureFlags{}, [][]int{{7}, {9, 8, 7, 6}, {9, 8}, {10, 9}}, []int{8, 9, 10}},
		{failureFlags{}, [][]int{{}, {}, {2, 1}, {2, 1}}, []int{1, 2}},
		{failureFlags{since: "2h"}, [][]int{{3, 2}, {4, 3, 2}}, []int{2, 3, 4}},
	} {
		ctx, end := context.WithCancel(t.Context())
		c := failuresServer(t, end, test.pages...)
		tick := make(chan time.Time)
		close(tick) // it asks again at once
		var out bytes.Buffer
		err := test.flags.followNew(ctx, c, &terminal.Printer{Out: &out}, tick)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want that it ends with its context", err)
		}
		var want strings.Builder
		for _, id := range test.want {
			fmt.Fprintf(&want, "%d\t2026-11-15T09:24:05.120Z\t2\tGET\t-\t404\troute_not_found\tno such\\apath\t3\tr%d\n", id, id)
		}
		if got := out.String(); got != want.String() {
			t.Errorf("got\n%s\nwant\n%s", got, want.String())
		}
	}
}
