package api_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"animalstore"
)

// some is n pets, every third of a status.
func some(n int) (pets []animalstore.NewPet) {
	for i := range n {
		pets = append(pets, animalstore.NewPet{Name: fmt.Sprint("pet ", i), CategoryID: int64(i), Status: animalstore.PetStatuses[i%3]})
	}
	return pets
}

var linkGrammar = regexp.MustCompile(`^<(/v1/[^>]+)>; rel="first"(?:, <(/v1/[^>]+)>; rel="next")?$`)

// links are where the list starts and where it goes on ("": nowhere).
func (a response) links(t testing.TB) (first, next string) {
	t.Helper()
	found := linkGrammar.FindStringSubmatch(a.header.Get("Link"))
	if found == nil {
		t.Fatalf("got Link %q, want %s", a.header.Get("Link"), linkGrammar)
	}
	return found[1], found[2]
}

// walk follows next links from path and returns the pages.
func (s *service) walk(ctx context.Context, path string) (pages [][]animalstore.Pet, err error) {
	for path != "" {
		got, err := s.send(ctx, call{path: path})
		if err != nil {
			return nil, err
		}
		var page []animalstore.Pet
		if err := json.Unmarshal(got.body, &page); err != nil {
			return nil, fmt.Errorf("got %v, want a page: %w", got, err)
		}
		pages = append(pages, page)
		path = linkGrammar.FindStringSubmatch(got.header.Get("Link"))[2]
	}
	return pages, nil
}

func TestEmptyLists(t *testing.T) {
	s := start(t)
	for path, first := range map[string]string{
		"/v1/pets":                      "/v1/pets",
		"/v1/pets?status=sold":          "/v1/pets?status=sold",
		"/v1/pets?limit=5&status=sold":  "/v1/pets?status=sold&limit=5",
		"/v1/store/orders":              "/v1/store/orders",
		"/v1/store/orders?petId=7":      "/v1/store/orders?petId=7",
		"/v1/store/orders?x=y&limit=20": "/v1/store/orders?limit=20",
	} {
		got := s.do(t, call{path: path})
		if string(got.body) != "[]\n" {
			t.Errorf("%s: got %s, want []", path, got.body)
		}
		if gotFirst, next := got.links(t); gotFirst != first || next != "" {
			t.Errorf("%s: got first %q and next %q, want %q and none", path, gotFirst, next, first)
		}
	}
}

func TestListWalk(t *testing.T) {
	s := start(t)
	added := s.add(t, some(45)...)
	slices.Reverse(added)
	sold := slices.DeleteFunc(slices.Clone(added), func(p animalstore.Pet) bool { return p.Status != animalstore.PetSold })
	tests := []struct {
		path  string
		sizes []int
		want  []animalstore.Pet
	}{
		{"/v1/pets", []int{20, 20, 5}, added},
		{"/v1/pets?limit=20", []int{20, 20, 5}, added},
		{"/v1/pets?limit=45", []int{45}, added},
		{"/v1/pets?limit=44", []int{44, 1}, added},
		{"/v1/pets?limit=100", []int{45}, added},
		{"/v1/pets?limit=15", []int{15, 15, 15}, added},
		{"/v1/pets?status=sold", []int{15}, sold},
		{"/v1/pets?status=sold&limit=5", []int{5, 5, 5}, sold},
		{"/v1/pets?limit=7&status=sold&unknown=x", []int{7, 7, 1}, sold},
		{"/v1/pets?limit=1&status=sold", slices.Repeat([]int{1}, 15), sold},
	}
	for _, test := range tests {
		t.Run(test.path, func(t *testing.T) {
			pages, err := s.walk(t.Context(), test.path)
			if err != nil {
				t.Fatal(err)
			}
			sizes := []int{}
			for _, page := range pages {
				sizes = append(sizes, len(page))
			}
			if !slices.Equal(sizes, test.sizes) {
				t.Errorf("pages: got %d, want %d", sizes, test.sizes)
			}
			if got := slices.Concat(pages...); !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", ids(got), ids(test.want))
			}
		})
	}
	t.Run("another limit on each page", func(t *testing.T) {
		var got []animalstore.Pet
		path := "/v1/pets?limit=1"
		for limit := 2; path != ""; limit++ {
			page := s.do(t, call{path: path})
			got = append(got, page.pets(t)...)
			if _, path = page.links(t); path != "" {
				path = regexp.MustCompile(`limit=\d+`).ReplaceAllString(path, fmt.Sprint("limit=", limit))
			}
		}
		if !slices.Equal(got, added) {
			t.Errorf("got %v, want %v", ids(got), ids(added))
		}
	})
	t.Run("links keep filter and limit", func(t *testing.T) {
		got := s.do(t, call{path: "/v1/pets?limit=5&status=sold"})
		first, next := got.links(t)
		if want := "/v1/pets?status=sold&limit=5"; first != want {
			t.Errorf("first: got %s, want %s", first, want)
		}
		u, err := url.Parse(next)
		if err != nil {
			t.Fatal(err)
		}
		if q := u.Query(); u.Path != "/v1/pets" || q.Get("limit") != "5" || q.Get("status") != "sold" || q.Get("cursor") == "" || len(q) != 3 {
			t.Errorf("next: got %s, want cursor, limit and status", next)
		}
		if again, _ := s.do(t, call{path: next}).links(t); again != first {
			t.Errorf("first on page two: got %s, want %s", again, first)
		}
	})
}

// cursorOf is the cursor that leads on from a page.
func (s *service) cursorOf(t testing.TB, path string) string {
	t.Helper()
	_, next := s.do(t, call{path: path}).links(t)
	u, err := url.Parse(next)
	if err != nil || u.Query().Get("cursor") == "" {
		t.Fatalf("%s: got next %q, want a cursor in it", path, next)
	}
	return u.Query().Get("cursor")
}

func TestCursorFilters(t *testing.T) {
	s := start(t)
	s.add(t, some(12)...)
	plain, sold := s.cursorOf(t, "/v1/pets?limit=3"), s.cursorOf(t, "/v1/pets?limit=2&status=sold")
	tests := []struct {
		name, path string
		want       []int64 // nil: 400 invalid_cursor
		message    string
	}{
		{"no filter as before", "/v1/pets?limit=3&cursor=" + plain, []int64{9, 8, 7}, ""},
		{"the same filter", "/v1/pets?limit=2&status=sold&cursor=" + sold, []int64{6, 3}, ""},
		{"the filter left out is the cursor's", "/v1/pets?limit=2&cursor=" + sold, []int64{6, 3}, ""},
		{"no limit", "/v1/pets?cursor=" + sold, []int64{6, 3}, ""},
		{"another filter", "/v1/pets?status=available&cursor=" + sold, nil, "another status"},
		{"a filter where there was none", "/v1/pets?status=sold&cursor=" + plain, nil, "another status"},
		{"of another list", "/v1/store/orders?cursor=" + plain, nil, "another list"},
		{"of another list, filtered", "/v1/store/orders?cursor=" + sold, nil, "another list"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := s.do(t, call{path: test.path})
			if test.want == nil {
				got.want(t, http.StatusBadRequest, animalstore.InvalidCursor)
				got.wantMessage(t, "cursor", test.message)
			} else if found := ids(got.pets(t)); !slices.Equal(found, test.want) {
				t.Errorf("got %d, want %d", found, test.want)
			}
		})
	}
}

// TestForgedCursors: a cursor that we did not hand out is refused as a cursor.
func TestForgedCursors(t *testing.T) {
	s := start(t)
	s.add(t, some(4)...)
	real := s.cursorOf(t, "/v1/pets?limit=2")
	text, err := base64.RawURLEncoding.DecodeString(real)
	if err != nil {
		t.Fatal(err)
	}
	forged := map[string]string{
		"empty": "", "a word": "x", "a number": "2", "not base64": "!!!!", "padded": real + "=", "padded more": real + "==",
		"cut off": real[:len(real)-1], "longer": real + "A", "in capitals": strings.ToUpper(real),
		"a blank after": real + "%20", "a line end after": real + "%0A", "a line end inside": real[:4] + "%0A" + real[4:], "a NUL": "%00", "not UTF-8": "%FF",
		"4000 characters": strings.Repeat("A", 4000),
	}
	encode := base64.RawURLEncoding.EncodeToString
	for name, replace := range map[string][2]string{
		"a position of zero":       {"|3|", "|0|"},
		"a negative position":      {"|3|", "|-3|"},
		"a signed position":        {"|3|", "|+3|"},
		"a zero before":            {"|3|", "|03|"},
		"a position out of range":  {"|3|", "|9223372036854775808|"},
		"a position in words":      {"|3|", "|three|"},
		"no position":              {"|3|", "||"},
		"another path":             {"/v1/pets", "/v1/petz"},
		"an unknown filter":        {"|3|", "|3|color=red"},
		"an unknown status":        {"|3|", "|3|status=lost"},
		"an empty status":          {"|3|", "|3|status="},
		"a status twice":           {"|3|", "|3|status=sold&status=sold"},
		"a broken escape":          {"|3|", "|3|status=%zz"},
		"a status of an order":     {"|3|", "|3|status=placed"},
		"a status that is escaped": {"|3|", "|3|status=s%6Fld"},
	} {
		if !strings.Contains(string(text), replace[0]) {
			t.Fatalf("got cursor %q, want %q in it: the forgeries need another form", text, replace[0])
		}
		forged[name] = encode([]byte(strings.Replace(string(text), replace[0], replace[1], 1)))
	}
	for name, cursor := range forged {
		t.Run(name, func(t *testing.T) {
			got := s.do(t, call{path: "/v1/pets?cursor=" + cursor, bad: true})
			got.want(t, http.StatusBadRequest, animalstore.InvalidCursor)
			got.wantMessage(t, "cursor")
		})
	}
}
