package api_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"animalstore"
)

// TestQuery is each parameter of each list, right and wrong.
func TestQuery(t *testing.T) {
	s := start(t)
	s.add(t, some(3)...)
	const parameter = animalstore.InvalidParameter
	both := []string{"/v1/pets", "/v1/store/orders"}
	pets, orders := both[:1], both[1:]
	tests := []struct {
		query   string
		paths   []string
		code    animalstore.Code // "": 200
		message string
	}{
		{"", both, "", ""},
		{"limit=1", both, "", ""},
		{"limit=100", both, "", ""},
		{"limit=%31", both, "", ""},
		{"&&limit=1&", both, "", ""},
		{"unknown=1&Limit=abc&LIMIT=0&STATUS=x&limit[]=0&page=2", both, "", ""},
		{"unknown=1&unknown=2", both, "", ""},
		{"petId=abc", pets, "", ""}, // not a parameter of this list
		{"limit=0", both, parameter, "limit must be an integer from 1 to 100"},
		{"limit=101", both, parameter, "limit"},
		{"limit=-1", both, parameter, "limit"},
		{"limit=%2B1", both, parameter, "limit"},
		{"limit=+1", both, parameter, "limit"}, // a blank and 1
		{"limit=01", both, parameter, "limit"},
		{"limit=1.0", both, parameter, "limit"},
		{"limit=1e1", both, parameter, "limit"},
		{"limit=0x10", both, parameter, "limit"},
		{"limit=1_0", both, parameter, "limit"},
		{"limit=abc", both, parameter, "limit"},
		{"limit=", both, parameter, "limit"},
		{"limit", both, parameter, "limit"},
		{"limit=%201", both, parameter, "limit"},
		{"limit=1%20", both, parameter, "limit"},
		{"limit=1%00", both, parameter, "limit"},
		{"limit=%D9%A1", both, parameter, "limit"}, // a digit, but not ours
		{"limit=18446744073709551617", both, parameter, "limit"},
		{"limit=" + strings.Repeat("9", 3000), both, parameter, "limit"},
		{"limit=5&limit=5", both, parameter, "limit is given 2 times"},
		{"limit=5&limit=", both, parameter, "limit is given 2 times"},
		{"limit=5&li%6Dit=6", both, parameter, "limit is given 2 times"},
		{"status=lost", both, parameter, "status must be one of"},
		{"status=", both, parameter, "status"},
		{"status", both, parameter, "status"},
		{"status=%20sold", pets, parameter, "status"},
		{"status=Sold", pets, parameter, "status"},
		{"status=SOLD", pets, parameter, "status"},
		{"status=sold,pending", pets, parameter, "status"},
		{"status=placed", pets, parameter, "available, pending, sold"},
		{"status=sold", orders, parameter, "placed, approved, delivered, cancelled"},
		{"status=null", both, parameter, "status"},
		{"status=sold&status=sold", pets, parameter, "status is given 2 times"},
		{"status=%FF", both, parameter, "status"},
		{"id=1,2", pets, "", ""},
		{"id=1&id=2", pets, "", ""},
		{"id=1&limit=1&id=2,3", pets, "", ""},
		{"id=1&id=", pets, parameter, "id must be"},
		{"id=1&id=x", pets, parameter, "id must be"},
		{"id=1" + strings.Repeat("&id=1", 100), pets, parameter, "id must be"},
		{"petId=1", orders, "", ""},
		{"petId=9223372036854775807", orders, "", ""},
		{"petId=0", orders, parameter, "petId must be a positive integer"},
		{"petId=-1", orders, parameter, "petId"},
		{"petId=01", orders, parameter, "petId"},
		{"petId=1.0", orders, parameter, "petId"},
		{"petId=abc", orders, parameter, "petId"},
		{"petId=", orders, parameter, "petId"},
		{"petId=9223372036854775808", orders, parameter, "petId"},
		{"petId=1&petId=2", orders, parameter, "petId is given 2 times"},
		{"cursor=", both, animalstore.InvalidCursor, "cursor"},
		{"cursor", both, animalstore.InvalidCursor, "cursor"},
		{"cursor=x&cursor=x", both, parameter, "cursor is given 2 times"},
		{"%zz", both, parameter, "query"},
		{"x=%", both, parameter, "query"},
		{"limit=1%", both, parameter, "query"},
		{"limit=1;status=sold", both, parameter, "query"},
	}
	for _, test := range tests {
		for _, path := range test.paths {
			name := test.query[:min(len(test.query), 40)]
			t.Run(path[4:]+"?"+name, func(t *testing.T) {
				got := s.do(t, call{path: path + "?" + test.query, bad: test.code != ""})
				if test.code == "" {
					got.want(t, http.StatusOK, "")
					return
				}
				got.want(t, http.StatusBadRequest, test.code)
				got.wantMessage(t, test.message)
				if head := s.do(t, call{method: "HEAD", path: path + "?" + test.query, bad: true}); head.status != got.status {
					t.Errorf("HEAD: got %v, want %d", head, got.status)
				}
			})
		}
	}
}

// TestOrders lists orders as they are in the database.
func TestOrders(t *testing.T) {
	s := start(t)
	engine.exec(t, s.database, `INSERT INTO orders (pet_id, status, created_at, updated_at) VALUES
		(1, 3, 1794700800000, 1794700800000), (2, 1, 1794700800001, 1794700800020), (1, 2, 1794700800002, 1794700800999),
		(2, 3, 1794700801000, 1794700801000), (1, 0, 1794700801001, 1794700801001)`)
	const first = `{"id":1,"petId":1,"status":"cancelled","createdAt":"2026-11-15T00:00:00.000Z","updatedAt":"2026-11-15T00:00:00.000Z"}`
	const third = `{"id":3,"petId":1,"status":"delivered","createdAt":"2026-11-15T00:00:00.002Z","updatedAt":"2026-11-15T00:00:00.999Z"}`
	const fifth = `{"id":5,"petId":1,"status":"placed","createdAt":"2026-11-15T00:00:01.001Z","updatedAt":"2026-11-15T00:00:01.001Z"}`
	tests := []struct {
		path string
		want []string // a page each
	}{
		{"/v1/store/orders?petId=1", []string{"[" + fifth + "," + third + "," + first + "]\n"}},
		{"/v1/store/orders?status=placed", []string{"[" + fifth + "]\n"}},
		{"/v1/store/orders?petId=1&limit=2", []string{"[" + fifth + "," + third + "]\n", "[" + first + "]\n"}},
		{"/v1/store/orders?petId=1&limit=1", []string{"[" + fifth + "]\n", "[" + third + "]\n", "[" + first + "]\n"}},
		{"/v1/store/orders?status=delivered&petId=2", []string{"[]\n"}},
	}
	for _, test := range tests {
		t.Run(test.path, func(t *testing.T) {
			got, next := []string{}, test.path
			for next != "" {
				page := s.do(t, call{path: next})
				got = append(got, string(page.body))
				_, next = page.links(t)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q\nwant %q", got, test.want)
			}
		})
	}
	t.Run("cursors", func(t *testing.T) {
		cursor := s.cursorOf(t, "/v1/store/orders?petId=1&limit=1")
		for query, want := range map[string]int{
			"cursor=" + cursor:                       200,
			"petId=1&cursor=" + cursor:               200,
			"petId=2&cursor=" + cursor:               400,
			"petId=1&status=placed&cursor=" + cursor: 400,
		} {
			if got := s.do(t, call{path: "/v1/store/orders?" + query}); got.status != want {
				t.Errorf("%s: got %v, want %d", query, got, want)
			}
		}
		s.do(t, call{path: "/v1/pets?cursor=" + cursor}).want(t, http.StatusBadRequest, animalstore.InvalidCursor)
	})
}
