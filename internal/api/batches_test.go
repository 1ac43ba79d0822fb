package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"animalstore"
	"animalstore/internal/api"
)

const batchPath = "/v1/pets/batch"

// batchOf is the body of a batch with n pets. The text of each is a format for its index.
func batchOf(n int, text string) string {
	pets := make([]string, n)
	for i := range pets {
		pets[i] = strings.ReplaceAll(text, "#", fmt.Sprint(i))
	}
	return `{"pets":[` + strings.Join(pets, ",") + `]}`
}

// TestAddBatch: a batch costs one request, and its pets come back in order.
func TestAddBatch(t *testing.T) {
	s := start(t)
	key := s.limitedKey(t, 10, 10)
	c := with(call{method: "POST", path: batchPath, key: key, body: batchOf(100, `{"name":"pet #","categoryId":7.0,"id":9,"x":null}`)}, "Idempotency-Key", "token")
	first := s.do(t, c)
	created := read[animalstore.PetBatch](t, first, http.StatusCreated).Pets
	for i, pet := range created {
		if want := (animalstore.Pet{ID: created[0].ID + int64(i), Name: fmt.Sprint("pet ", i), CategoryID: 7, Status: "available"}); pet != want {
			t.Errorf("got %+v, want %+v", pet, want)
		}
	}
	if left := first.limits().remaining; len(created) != 100 || left != 9 {
		t.Errorf("got %d pets and %d requests left, want 100 and 9", len(created), left)
	}
	wantReplay(t, first, s.do(t, c))
	c.body = batchOf(100, `{"name":"other #","categoryId":7}`)
	s.do(t, c).want(t, http.StatusUnprocessableEntity, animalstore.IdempotencyKeyReused)
	if got := s.do(t, call{path: "/v1/pets?limit=100"}).pets(t); len(got) != 100 || got[0] != created[99] || got[99] != created[0] {
		t.Errorf("got %d pets from %+v to %+v, want the batch, newest first", len(got), got[0], got[len(got)-1])
	}
}

// TestRefusedBatch: one wrong pet and nothing is stored. The message begins with where it is.
func TestRefusedBatch(t *testing.T) {
	const malformed, invalid = animalstore.MalformedJSON, animalstore.ValidationFailed
	wrongAt17 := func(pet string) string {
		return strings.Replace(batchOf(20, `{"name":"pet #","categoryId":7}`), `{"name":"pet 17","categoryId":7}`, pet, 1)
	}
	s := start(t)
	for _, test := range []struct {
		name, body string
		status     int
		code       animalstore.Code
		where      string // the beginning of the message
	}{
		{"no pets", `{}`, 400, invalid, "pets "},
		{"101", batchOf(101, rex), 400, invalid, "pets "},
		{"no name", wrongAt17(`{"categoryId":7}`), 400, invalid, "pets[17].name "},
		{"a fraction", wrongAt17(`{"name":"Rex","categoryId":7.5}`), 400, invalid, "pets[17].categoryId "},
		{"a wrong value before a wrong type", wrongAt17(`{"name":"","categoryId":7},{"name":1,"categoryId":7}`), 400, invalid, "pets[17].name "},
		{"a wrong type before a wrong value", wrongAt17(`{"name":1,"categoryId":7},{"name":"","categoryId":7}`), 400, invalid, "pets[17].name "},
		{"a bare array", `[` + rex + `]`, 400, malformed, ""},
		{"1,001 fields", batchOf(100, `{"name":"pet #","categoryId":7,"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1}`), 400, malformed, ""},
		{"more than 1 MiB", batchOf(1, rex) + strings.Repeat(" ", api.MaxBody), 413, animalstore.PayloadTooLarge, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := s.do(t, call{method: "POST", path: batchPath, body: test.body, bad: true})
			got.want(t, test.status, test.code)
			got.wantMessage(t, test.where)
			if message := read[animalstore.Error](t, got, test.status).Message; !strings.HasPrefix(message, test.where) {
				t.Errorf("got message %q, want it to begin with %q", message, test.where)
			}
		})
	}
	if got := s.do(t, call{path: "/v1/pets"}); string(got.body) != "[]\n" {
		t.Errorf("after refusals alone: got %v, want an empty store", got)
	}
}
