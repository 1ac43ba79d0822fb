package main

import (
	"errors"
	"testing"

	"animalstore"
	"animalstore/client"
)

// TestEndedEarly: an import is continued unless its first request was refused for good.
func TestEndedEarly(t *testing.T) {
	none, some, unknown := client.PetImport{}, client.PetImport{Existing: 100}, client.PetImport{Unknown: 100}
	for _, test := range []struct {
		status int // 0: no response
		done   client.PetImport
		want   bool
	}{
		{400, none, false}, {403, none, false}, {422, none, false},
		{400, some, true}, {403, some, true}, {422, some, true}, {403, unknown, true},
		{0, none, true}, {429, none, true}, {500, none, true}, {503, none, true},
	} {
		err := errors.New("no response")
		if test.status > 0 {
			err = &client.Error{Status: test.status, Err: animalstore.Errorf(animalstore.InternalError, "refused")}
		}
		got := endedEarly(test.done, err)
		if !errors.Is(got, err) || errors.As(got, new(incomplete)) != test.want {
			t.Errorf("status %d after %+v: got %#v, want it to be continued: %t", test.status, test.done, got, test.want)
		}
	}
}
