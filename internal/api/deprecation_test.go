package api_test

import (
	"cmp"
	"errors"
	"net/http"
	"testing"
	"time"

	"animalstore"
)

var removal = time.Date(2030, 12, 5, 0, 0, 0, 0, time.UTC)

// notice is how getPet's responses announce its removal.
var notice = map[string]string{
	"Deprecation": "@1794700800",
	"Sunset":      "Thu, 05 Dec 2030 00:00:00 GMT",
	"Link":        `</v1/pets>; rel="successor-version", </docs/guides/callers#the-deprecated-operation>; rel="deprecation"; type="text/html"`,
}

func (a response) wantNotice(t *testing.T, want bool) {
	t.Helper()
	for name, value := range notice {
		if !want {
			value = ""
		}
		if got := a.header.Get(name); got != value && (want || name != "Link") {
			t.Errorf("%s: got %q, want %q", name, got, value)
		}
	}
}

func TestDeprecationNotice(t *testing.T) {
	s := start(t)
	s.add(t, animalstore.NewPet{Name: "Rex"})
	writer := s.key(t, animalstore.Write)
	tests := []struct {
		name   string
		call   call
		fault  fault
		want   int
		notice bool
	}{
		{"a pet", call{path: "/v1/pets/1"}, nil, 200, true},
		{"no permission", call{path: "/v1/pets/1", key: writer}, nil, 403, true},
		{"no pet", call{path: "/v1/pets/2"}, nil, 404, true},
		{"a failure", call{path: "/v1/pets/1"}, failWith(errors.New("boom")), 500, true},
		{"no key", call{path: "/v1/pets/1", key: noKey}, nil, 401, false},
		{"another method", call{method: "POST", path: "/v1/pets/1"}, nil, 405, false},
		{"a change", call{method: "PATCH", path: "/v1/pets/1", body: `{"name":"Max"}`}, nil, 200, false},
		{"a removal", call{method: "DELETE", path: "/v1/pets/99"}, nil, 404, false},
		{"the list", call{path: "/v1/pets"}, nil, 200, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.call.bad = true
			s.db.arm("Pet", test.fault)
			defer s.db.arm("Pet", nil)
			got := s.do(t, test.call)
			if got.status != test.want {
				t.Errorf("got %v, want %d", got, test.want)
			}
			got.wantNotice(t, test.notice)
		})
	}
}

// TestRemoval: getPet ends at one instant, and nothing else ends with it.
func TestRemoval(t *testing.T) {
	s := start(t)
	s.add(t, animalstore.NewPet{Name: "Rex"})
	for now, codes := range map[time.Time][2]animalstore.Code{
		removal.Add(-1): {"", animalstore.PetNotFound},
		removal:         {animalstore.EndpointRemoved, animalstore.EndpointRemoved},
	} {
		s.clock.Set(now)
		for i, path := range []string{"/v1/pets/1", "/v1/pets/abc"} {
			status := cmp.Or(codes[i].Status(), http.StatusOK)
			for _, method := range []string{"GET", "HEAD"} {
				got := s.do(t, call{method: method, path: path, bad: true})
				got.want(t, status, codes[i])
				got.wantNotice(t, true)
			}
		}
		s.do(t, call{path: "/v1/pets"}).want(t, http.StatusOK, "")
		changed := s.do(t, patch("/v1/pets/1", `{"name":"Max"}`))
		changed.want(t, http.StatusOK, "")
		changed.wantNotice(t, false)
	}
}
