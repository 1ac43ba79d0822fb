package api_test

import (
	"encoding/base64"
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
func walk[T any](t testing.TB, s *service, path string) (pages [][]T) {
	t.Helper()
	for path != "" {
		if len(pages) > 1000 {
			t.Fatalf("the list does not end: %s", path)
		}
		page := s.do(t, call{path: path})
		pages = append(pages, read[[]T](t, page, http.StatusOK))
		_, path = page.links(t)
	}
	return pages
}

func TestEmptyLists(t *testing.T) {
	s := start(t)
	for path, first := range map[string]string{
		"/v1/pets":                                     "/v1/pets",
		"/v1/pets?status=sold":                         "/v1/pets?status=sold",
		"/v1/pets?limit=5&status=sold":                 "/v1/pets?status=sold&limit=5",
		"/v1/store/orders":                             "/v1/store/orders",
		"/v1/store/orders?petId=7":                     "/v1/store/orders?petId=7",
		"/v1/store/orders?sort=oldest&reference=A+%7C": "/v1/store/orders?reference=A+%7C&sort=oldest",
		"/v1/store/orders?x=y&limit=20":                "/v1/store/orders?limit=20",
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
	where := func(matches func(p animalstore.Pet) bool) []animalstore.Pet {
		return slices.DeleteFunc(slices.Clone(added), func(p animalstore.Pet) bool { return !matches(p) })
	}
	sold := where(func(p animalstore.Pet) bool { return p.Status == animalstore.PetSold })
	chosen := where(func(p animalstore.Pet) bool { return slices.Contains([]int64{1, 3, 6, 40}, p.ID) })
	ofCategory := where(func(p animalstore.Pet) bool { return p.CategoryID == 5 })
	most := added[:21]
	var mostIDs []string
	for _, p := range most {
		mostIDs = append(mostIDs, fmt.Sprint(p.ID))
	}
	tests := []struct {
		path  string
		sizes []int
		want  []animalstore.Pet
	}{
		{"/v1/pets", []int{20, 20, 5}, added},
		{"/v1/pets?limit=45", []int{45}, added},
		{"/v1/pets?status=sold&limit=5", []int{5, 5, 5}, sold},
		{"/v1/pets?limit=7&status=sold&unknown=x", []int{7, 7, 1}, sold},
		{"/v1/pets?categoryId=5&status=pending", []int{0}, nil},
		{"/v1/pets?id=3,40,1,6,999999,3&limit=3", []int{3, 1}, chosen},
		{"/v1/pets?id=6,40,1,3&status=sold&categoryId=5&limit=1", []int{1}, ofCategory},
		{"/v1/pets?id=" + strings.Join(mostIDs, ","), []int{21}, most}, // one page unless a limit says otherwise
	}
	for _, test := range tests {
		t.Run(test.path, func(t *testing.T) {
			pages := walk[animalstore.Pet](t, s, test.path)
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
}

// TestEveryListHasPages walks through the other lists, newest first.
func TestEveryListHasPages(t *testing.T) {
	s := start(t)
	pet := s.addOne(t, "available").ID
	var orders, photos, webhooks, pings []int64
	for range 4 {
		orders = append(orders, s.order(t, pet, "cancelled").ID)
		photos = append([]int64{s.addPhoto(t, pet).ID}, photos...) // oldest first in the list
		webhooks = append(webhooks, s.addWebhook(t).ID)
		ping, err := s.db.DB.PingWebhook(t.Context(), webhooks[0], animalstore.WebhookPing, animalstore.At(s.clock.Now()))
		if err != nil {
			t.Fatal(err)
		}
		pings = append(pings, ping.ID)
	}
	oldest := slices.Clone(orders)
	slices.Reverse(oldest)
	keys := []int64{1, 2}
	_, revoked := s.with(t, everything, nil)
	if _, err := s.revoke(t, revoked); err != nil {
		t.Fatal(err)
	}
	keys = append(keys, revoked)
	deliveries := fmt.Sprintf("/v1/webhooks/%d/deliveries", webhooks[0])
	for path, want := range map[string][]int64{
		"/v1/store/orders?x=y":                                     orders,
		"/v1/store/orders?status=cancelled":                        orders,
		fmt.Sprint("/v1/store/orders?petId=", pet):                 orders,
		"/v1/store/orders?status=placed":                           nil,
		"/v1/store/orders?status=placed,cancelled":                 orders,
		"/v1/store/orders?sort=oldest&status=cancelled":            oldest,
		"/v1/store/orders?reference=nobody":                        nil,
		fmt.Sprint("/v1/store/orders?petId=", pet+1):               nil,
		fmt.Sprintf("/v1/photos?petId=%d,%d", pet+1, pet):          photos,
		fmt.Sprint("/v1/photos?petId=", pet+1):                     nil,
		"/v1/keys?x=y":                                             keys,
		"/v1/webhooks?x=y":                                         webhooks,
		deliveries + "?state=pending":                              pings,
		deliveries + "?state=failed":                               nil,
		fmt.Sprintf("/v1/webhooks/%d/deliveries?x=y", webhooks[1]): nil,
	} {
		want = slices.Clone(want)
		slices.Reverse(want)
		for _, limit := range []int{1, 2, 100} {
			var got []int64
			for next := fmt.Sprintf("%s&limit=%d", path, limit); next != "" && len(got) <= len(want); {
				page := s.do(t, call{path: next, key: s.admin})
				page.want(t, http.StatusOK, "")
				if found := idsIn(t, page); len(found) > limit {
					t.Errorf("%s: got a page of %d", next, len(found))
				}
				got = append(got, idsIn(t, page)...)
				_, next = page.links(t)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s, limit %d: got %d, want %d", path, limit, got, want)
			}
		}
	}
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
	filtered := s.cursorOf(t, "/v1/pets?id=10,7,1&status=available&limit=1")
	pet := s.addOne(t, "available").ID
	older := s.order(t, pet, "cancelled").ID
	s.order(t, pet, "cancelled")
	ordered := s.cursorOf(t, fmt.Sprint("/v1/store/orders?limit=1&petId=", pet))
	hook := fmt.Sprint("/v1/webhooks/", s.addWebhook(t).ID)
	forge := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	tests := []struct {
		name, path string
		want       []int64 // nil: 400 invalid_cursor
	}{
		{"no filter as before", "/v1/pets?limit=3&cursor=" + plain, []int64{9, 8, 7}},
		{"the same filter", "/v1/pets?limit=2&status=sold&cursor=" + sold, []int64{6, 3}},
		{"the filter left out is the cursor's", "/v1/pets?limit=2&cursor=" + sold, []int64{6, 3}},
		{"no limit", "/v1/pets?cursor=" + sold, []int64{6, 3}},
		{"another filter", "/v1/pets?status=available&cursor=" + sold, nil},
		{"a filter where there was none", "/v1/pets?status=sold&cursor=" + plain, nil},
		{"of another list", "/v1/store/orders?cursor=" + plain, nil},
		{"of another list, filtered", "/v1/store/orders?cursor=" + sold, nil},
		{"the same pet", fmt.Sprintf("/v1/store/orders?petId=%d&cursor=%s", pet, ordered), []int64{older}},
		{"the pet left out is the cursor's", "/v1/store/orders?cursor=" + ordered, []int64{older}},
		{"another order of the list", fmt.Sprintf("/v1/store/orders?petId=%d&sort=oldest&cursor=%s", pet, ordered), nil},
		{"another reference", fmt.Sprintf("/v1/store/orders?petId=%d&reference=A&cursor=%s", pet, ordered), nil},
		{"another pet", "/v1/store/orders?petId=1&cursor=" + ordered, nil},
		{"another filter in addition to the pet", fmt.Sprintf("/v1/store/orders?petId=%d&status=placed&cursor=%s", pet, ordered), nil},
		{"of the orders", "/v1/pets?cursor=" + ordered, nil},
		{"ids and a status", "/v1/pets?limit=2&cursor=" + filtered, []int64{7, 1}},
		{"other ids", "/v1/pets?id=10,7&cursor=" + filtered, nil},
		{"another category", "/v1/pets?categoryId=1&cursor=" + filtered, nil},
		{"of another webhook", hook + "/deliveries?cursor=" + forge("/v1/webhooks/4711/deliveries|7|"), nil},
		{"another state", hook + "/deliveries?state=pending&cursor=" + forge(hook+"/deliveries|7|state=failed"), nil},
		{"an unknown state", hook + "/deliveries?cursor=" + forge(hook+"/deliveries|7|state=lost"), nil},
		{"of the pets, for keys", "/v1/keys?cursor=" + plain, nil},
		{"of the pets, for categories", "/v1/categories?cursor=" + plain, nil},
		{"a word, for categories", "/v1/categories?cursor=" + forge("/v1/categories|zero|"), nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := s.do(t, call{path: test.path, key: s.admin, bad: test.want == nil})
			if test.want == nil {
				got.want(t, http.StatusBadRequest, animalstore.InvalidCursor)
			} else if found := idsIn(t, got); !slices.Equal(found, test.want) {
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
		"empty": "", "a word": "x", "a number": "2", "not base64": "!!!!", "padded": real + "=",
		"cut off": real[:len(real)-1], "longer": real + "A", "in capitals": strings.ToUpper(real),
		"a blank after": real + "%20", "a line end inside": real[:4] + "%0A" + real[4:], "a NUL": "%00", "not UTF-8": "%FF",
		"4000 characters": strings.Repeat("A", 4000),
	}
	encode := base64.RawURLEncoding.EncodeToString
	for name, replace := range map[string][2]string{
		"a position of zero":       {"|3|", "|0|"},
		"a negative position":      {"|3|", "|-3|"},
		"an unknown filter":        {"|3|", "|3|color=red"},
		"an unknown status":        {"|3|", "|3|status=lost"},
		"a status that is escaped": {"|3|", "|3|status=s%6Fld"},
		"a name without its place": {"|3|", "|3|name=rex"},
		"a place without a name":   {"|3|", "|3||rex"},
		"a place not in UTF-8":     {"|3|", "|3|name=rex|rex\xff"},
		"a name that is too long":  {"|3|", "|3|name=" + strings.Repeat("x", 101) + "|" + strings.Repeat("x", 101)},
		"a name and an id":         {"|3|", "|3|id=3&name=rex|rex"},
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
		})
	}
}

// TestQuery is each parameter of each operation, right and wrong. The types of events and
// what a subject looks like are tested with their types.
func TestQuery(t *testing.T) {
	t.Parallel()
	s := start(t).inProcess()
	const parameter, cursor = animalstore.InvalidParameter, animalstore.InvalidCursor
	both := []string{"/v1/pets", "/v1/store/orders"}
	pets, orders, events, photos := both[:1], both[1:], []string{"/v1/events"}, []string{"/v1/photos"}
	deliveries := []string{fmt.Sprintf("/v1/webhooks/%d/deliveries", s.addWebhook(t).ID)}
	others := append([]string{"/v1/keys", "/v1/webhooks", "/v1/categories", "/v1/failures"}, deliveries...)
	hundred := "id=1" + strings.Repeat(",9223372036854775807", 99)
	tests := []struct {
		paths   []string
		code    animalstore.Code // "": 200
		field   string
		queries []string
	}{
		{both, "", "", []string{"", "limit=1", "limit=100", "limit=%31", "&&limit=1&", "unknown=1&unknown=2&Limit=abc&STATUS=x&limit[]=0&page=2"}},
		{both, parameter, "limit", []string{
			"limit=0", "limit=101", "limit=-1", "limit=%2B1", "limit=01", "limit=1.0", "limit=1e1", "limit=0x10", "limit=abc", "limit=", "limit",
			"limit=1%20", "limit=%D9%A1", "limit=18446744073709551617", "limit=5&limit=5", "limit=5&li%6Dit=6",
		}},
		{both, parameter, "status", []string{"status=lost", "status=", "status", "status=null", "status=%FF"}},
		{pets, parameter, "status", []string{"status=%20sold", "status=Sold", "status=sold,pending", "status=placed", "status=sold&status=sold"}},
		{orders, parameter, "status", []string{"status=sold", "status=placed,sold", "status=placed,", "status=,", "status=placed,%20approved", "status=placed&status=approved"}},
		{orders, "", "", []string{"status=placed,approved", "status=placed,placed", "sort=oldest", "reference=A%20%7C%26", "reference=" + strings.Repeat("%C3%9F", 100)}},
		{orders, parameter, "sort", []string{"sort=", "sort=newest", "sort=Oldest", "sort=oldest&sort=oldest"}},
		{orders, parameter, "reference", []string{"reference=", "reference=%00", "reference=%FF", "reference=" + strings.Repeat("x", 101), "reference=a&reference=a"}},
		{pets, "", "", []string{"petId=abc", "id=1,2", hundred, "categoryId=-9223372036854775808"}},
		{pets, parameter, "id", []string{
			hundred + ",1", hundred + "&id=1", "id=", "id=,", "id=1,", "id=1,,2", "id=0", "id=-1", "id=a", "id=1.0", "id=01", "id=1%202", "id=9223372036854775808", "id=1&id=", "id=1&id=x",
		}},
		{pets, parameter, "categoryId", []string{"categoryId=", "categoryId=1.0", "categoryId=-0", "categoryId=9223372036854775808", "categoryId=1,2"}},
		{orders, "", "", []string{"petId=1", "petId=9223372036854775807"}},
		{orders, parameter, "petId", []string{"petId=0", "petId=-1", "petId=01", "petId=1.0", "petId=abc", "petId=", "petId=9223372036854775808", "petId=1&petId=2"}},
		{pets, parameter, "name", []string{
			"name=", "name", "name=" + strings.Repeat("x", 101), "name=" + strings.Repeat("%F0%9F%90%B6", 101), "name=a%00", "name=%FF", "name=%ED%A0%80", "name=a&name=b", "name=a&id=1",
		}},
		{others, parameter, "limit", []string{"limit=0", "limit=101", "limit=", "limit=5&limit=5"}},
		{others, parameter, "query", []string{"%zz"}},
		{others, cursor, "cursor", []string{"cursor=", "cursor=x"}},
		{deliveries, parameter, "state", []string{"state=", "state=Failed", "state=failed&state=failed"}},
		{photos, parameter, "petId", []string{"", "petId=", "petId=0", "petId=1,x", "petId=1" + strings.Repeat(",1", 100)}},
		{photos, parameter, "limit", []string{"petId=1&limit=0"}},
		{photos, cursor, "cursor", []string{"petId=1&cursor=x"}},

		{events, "", "", []string{"", "unknown=1", "after=0", "after=latest", "wait=0",
			"subject=category/-5", "type=webhook.*", "limit=100", "petId=7&type=key.*"}},
		{events, parameter, "after", []string{"after=-1", "after=01", "after=", "after=newest", "after=9223372036854775808", "after=1&after=2"}},
		{events, parameter, "type", []string{"type=", "type=dog.*"}},
		{events, parameter, "subject", []string{"subject=", "subject=pets/1", "subject=pet/1&subject=pet/2"}},
		{events, parameter, "petId", []string{"petId=", "petId=0", "petId=x", "petId=1&petId=2", "petId=1&subject=pet/1"}},
		{events, parameter, "limit", []string{"limit=0", "limit=101"}},
		{events, parameter, "wait", []string{"wait=-1", "wait=31", "wait=1.5", "wait=", "wait=01", "wait=1&wait=1"}},
		{events, parameter, "before", []string{"before=0", "before=-1", "before=", "before=newest",
			"before=1&before=2", "before=5&after=1", "before=latest&wait=0"}},
		{events, parameter, "query", []string{"after=%zz"}},

		{[]string{"/v1/usage", "/v1/keys/1/usage"}, parameter, "", []string{"hours=0", "hours=2161", "hours=", "hours=1.0", "hours=1&hours=1", "%zz"}},
		{[]string{"/v1/store/inventory"}, parameter, "", []string{"categoryId=", "categoryId=1.0", "categoryId=9223372036854775808", "categoryId=7&categoryId=7", "categoryId=%zz"}},
		{[]string{"/v1/failures"}, parameter, "", []string{
			"keyId=0", "keyId=x", "code=unknown", "code=", "requestId=", "requestId=a+b", "since=yesterday", "since=", "since=0001-01-01T00:00:00Z", "since=2026-11-15", "code=a&code=b",
		}},
		{both, cursor, "cursor", []string{"cursor=", "cursor"}},
		{both, parameter, "cursor", []string{"cursor=x&cursor=x"}},
		{both, parameter, "query", []string{"%zz", "x=%", "limit=1%", "limit=1;status=sold"}},
	}
	for _, test := range tests {
		for _, query := range test.queries {
			for _, path := range test.paths {
				t.Run(path[4:]+"?"+query[:min(len(query), 40)], func(t *testing.T) {
					got := s.do(t, call{path: path + "?" + query, key: s.admin, bad: test.code != ""})
					if test.code == "" {
						got.want(t, http.StatusOK, "")
						return
					}
					got.want(t, http.StatusBadRequest, test.code)
					got.wantMessage(t, test.field)
				})
			}
		}
	}
}
