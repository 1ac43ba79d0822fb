package api_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
)

var removal = time.Date(2030, 12, 5, 0, 0, 0, 0, time.UTC)

// notice is how getPet's responses announce its removal.
var notice = map[string]string{
	"Deprecation": "@1794700800",
	"Sunset":      "Thu, 05 Dec 2030 00:00:00 GMT",
	"Link":        `</v1/pets>; rel="successor-version"`,
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
		{"a pet's head", call{method: "HEAD", path: "/v1/pets/1"}, nil, 200, true},
		{"no permission", call{path: "/v1/pets/1", key: writer}, nil, 403, true},
		{"no pet", call{path: "/v1/pets/2"}, nil, 404, true},
		{"no id", call{path: "/v1/pets/abc"}, nil, 404, true},
		{"a failure", call{path: "/v1/pets/1"}, failWith(errors.New("boom")), 500, true},
		{"a panic", call{path: "/v1/pets/1"}, func(context.Context) error { panic("boom") }, 500, true},
		{"storage gone", call{path: "/v1/pets/1"}, failWith(db.ErrUnavailable), 503, true},
		{"no key", call{path: "/v1/pets/1", key: noKey}, nil, 401, false},
		{"a wrong key", call{path: "/v1/pets/1", key: "x"}, nil, 401, false},
		{"another method", call{method: "POST", path: "/v1/pets/1"}, nil, 405, false},
		{"a change", call{method: "PATCH", path: "/v1/pets/1", body: `{"name":"Max"}`}, nil, 200, false},
		{"a removal", call{method: "DELETE", path: "/v1/pets/99"}, nil, 404, false},
		{"OPTIONS", call{method: "OPTIONS", path: "/v1/pets/1"}, nil, 204, false},
		{"the list", call{path: "/v1/pets"}, nil, 200, false},
		{"another path", call{path: "/v1/pets/1/"}, nil, 404, false},
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
	tests := []struct {
		name string
		now  time.Time
		gone bool
	}{
		{"a second before", removal.Add(-time.Second), false},
		{"a millisecond before", removal.Add(-time.Millisecond), false},
		{"a nanosecond before", removal.Add(-1), false},
		{"at it", removal, true},
		{"at it, told in another zone", removal.In(time.FixedZone("", -5*3600)), true},
		{"that day in a zone ahead", time.Date(2030, 12, 5, 1, 0, 0, 0, time.FixedZone("", 2*3600)), false},
		{"a millisecond after", removal.Add(time.Millisecond), true},
		{"years after", removal.AddDate(50, 0, 0), true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s.clock.set(test.now)
			found, missing := http.StatusOK, http.StatusNotFound
			var foundCode, missingCode animalstore.Code = "", animalstore.PetNotFound
			if test.gone {
				found, missing = http.StatusGone, http.StatusGone
				foundCode, missingCode = animalstore.EndpointRemoved, animalstore.EndpointRemoved
			}
			for path, want := range map[string]int{"/v1/pets/1": found, "/v1/pets/2": missing, "/v1/pets/abc": missing} {
				code := foundCode
				if path != "/v1/pets/1" {
					code = missingCode
				}
				for _, method := range []string{"GET", "HEAD"} {
					got := s.do(t, call{method: method, path: path, bad: true})
					got.want(t, want, code)
					got.wantNotice(t, true)
				}
			}
			s.do(t, call{path: "/v1/pets"}).want(t, http.StatusOK, "")
			s.do(t, call{method: "OPTIONS", path: "/v1/pets/1"}).want(t, http.StatusNoContent, "")
			s.do(t, call{method: "PUT", path: "/v1/pets/1"}).want(t, http.StatusMethodNotAllowed, animalstore.MethodNotAllowed)
			for _, c := range []call{{method: "PATCH", path: "/v1/pets/1", body: `{"name":"Max"}`}, {method: "DELETE", path: fmt.Sprint("/v1/pets/", s.add(t, animalstore.NewPet{Name: "Mia"})[0].ID)}} {
				got := s.do(t, c)
				if got.status >= 300 {
					t.Errorf("%s: got %v, want it to stay", c.method, got)
				}
				got.wantNotice(t, false)
			}
		})
	}
}
