package api_test

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/photo/phototest"
)

const rex = `{"name":"Rex","categoryId":7}`

// retried is a POST with an Idempotency-Key.
func retried(path, body, token string) call { return post(path, body, "Idempotency-Key", token) }

// wantReplay fails the test unless got is first again, and says so.
func wantReplay(t testing.TB, first, got response) {
	t.Helper()
	if got.header.Get("Idempotent-Replayed") != "true" || first.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("Idempotent-Replayed: got %q and then %q, want none and then true", first.header.Get("Idempotent-Replayed"), got.header.Get("Idempotent-Replayed"))
	}
	sent := func(h http.Header) http.Header {
		kept := maps.Clone(h)
		for name := range kept {
			if name == "Date" || name == "X-Request-Id" || name == "Idempotent-Replayed" || strings.HasPrefix(strings.ToLower(name), "x-ratelimit") {
				delete(kept, name)
			}
		}
		return kept
	}
	if got.status != first.status || string(got.body) != string(first.body) || fmt.Sprint(sent(got.header)) != fmt.Sprint(sent(first.header)) {
		t.Errorf("got %v %v\nwant %v %v", got, sent(got.header), first, sent(first.header))
	}
}

// TestReplay: the same request under the same token returns the first response again, even
// after what it made has changed or is gone. Another request under that token is refused.
func TestReplay(t *testing.T) {
	s := start(t)
	pet := s.addOne(t, "available").ID
	order := fmt.Sprintf(`{"petId":%d}`, s.addOne(t, "available").ID)
	for name, test := range map[string]struct {
		call   call
		other  string // body
		change func(path string)
	}{
		"pet": {post("/v1/pets", `{ "name" : "<Zoë> & 'Rex' \u2028 🦊", "categoryId" : 7 , "status":"pending"}`), rex, func(path string) {
			s.do(t, remove(path)).want(t, 204, "")
		}},
		"order": {post("/v1/store/orders", order), `{"petId":99}`, func(path string) {
			s.clock.Advance(time.Minute)
			s.do(t, patch(path, `{"status":"cancelled"}`)).want(t, 200, "")
		}},
		"photo": {upload(pet, "image/jpeg", smallJPEG), string(phototest.JPEG(phototest.Drawing(10, 10))), func(path string) {
			s.do(t, remove(path)).want(t, 204, "")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c := with(test.call, "Idempotency-Key", "token") // the same on every route
			first := s.do(t, c)
			first.want(t, 201, "")
			wantReplay(t, first, s.do(t, c))
			test.change(first.header.Get("Location"))
			wantReplay(t, first, s.do(t, c))
			c.body = test.other
			s.do(t, c).want(t, 422, animalstore.IdempotencyKeyReused)
		})
	}
	// A photo of another pet is another request.
	other := with(upload(s.addOne(t, "available").ID, "image/jpeg", smallJPEG), "Idempotency-Key", "token")
	if got := s.do(t, other); got.status != 201 || got.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("got %v, want a photo of the other pet", got)
	}
}

func TestTokenGrammar(t *testing.T) {
	s := start(t)
	for name, token := range map[string]string{
		"255": strings.Repeat("k", 255), "all that is visible": "!\"#$%&'()*+,-./0123456789:;<=>?@[\\]^_`{|}~",
	} {
		t.Run(name, func(t *testing.T) {
			first := s.do(t, retried("/v1/pets", rex, token))
			first.want(t, 201, "")
			wantReplay(t, first, s.do(t, retried("/v1/pets", rex, token)))
		})
	}
	for _, method := range []string{"CreatePet", "PlaceOrder"} {
		s.db.arm(method, failWith(errors.New("what is refused must not reach storage")))
	}
	for name, values := range map[string][]string{
		"empty": {""}, "256": {strings.Repeat("k", 256)}, "a space": {"a b"}, "a tab": {"a\tb"}, "not ASCII": {"é"}, "given twice": {"a", "b"}, "the same twice": {"a", "a"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, c := range []call{post("/v1/pets", rex), post("/v1/store/orders", `{"petId":1}`)} {
				c.header["Idempotency-Key"] = values
				got := s.do(t, bad(c))
				got.want(t, 400, animalstore.InvalidParameter)
			}
		})
	}
}
