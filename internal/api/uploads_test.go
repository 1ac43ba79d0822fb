package api_test

import (
	"fmt"
	"net/http"
	"testing"

	"animalstore"
	"animalstore/internal/photo/phototest"
	"animalstore/internal/testenv"
)

// TestUploadsTakeTurns: a key that uploads over many connections delays neither the upload
// of another key nor its reads for long, and all of its own succeed.
func TestUploadsTakeTurns(t *testing.T) {
	testenv.Slow(t)
	s := start(t)
	var pets []animalstore.Pet
	for range 4 {
		pets = append(pets, s.add(t, animalstore.NewPet{Name: "Rex"})...)
	}
	picture := string(phototest.JPEG(phototest.Drawing(200, 150)))
	other := s.key(t, readWrite)
	mine := upload(pets[3].ID, "image/jpeg", smallJPEG)
	mine.key = other
	s.do(t, mine).want(t, http.StatusCreated, "") // its key and connection are ready
	const connections = 16
	busy := make(chan error, connections)
	for i := range connections {
		go func() {
			got, err := s.send(t.Context(), upload(pets[i%3].ID, "image/jpeg", picture))
			if err == nil && got.status != http.StatusCreated {
				err = fmt.Errorf("got %v, want 201", got)
			}
			busy <- err
		}()
	}
	first := <-busy // now they are in progress
	before := len(busy)
	s.do(t, mine).want(t, http.StatusCreated, "")
	if waited := len(busy) - before; waited > connections/2 {
		t.Errorf("another key waited for %d of %d uploads, want at most half", waited, connections)
	}
	s.do(t, call{path: "/v1/pets", key: other}).want(t, http.StatusOK, "")
	if err := first; err != nil {
		t.Error(err)
	}
	for range connections - 1 {
		if err := <-busy; err != nil {
			t.Error(err)
		}
	}
}
