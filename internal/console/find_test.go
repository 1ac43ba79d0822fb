package console_test

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"animalstore"
)

const findBox = `<form class="find" role="search" method="get" action="/console/pets">`

var petLink = regexp.MustCompile(`<a class="pet whole" href="/console/pets/[0-9]+">.*?<span class="clamp"><bdi>([^<]*)</bdi>`)

// TestFind: the box on every page finds a pet by its id, or pets by how their names begin,
// without JavaScript.
func TestFind(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn(everything)
	s.category(1, "Dogs")
	for _, name := range []string{"Rex", "rexona", "Straße", "7 of 9", "Max", "<b>Tom</b>"} {
		s.Pet(name)
	}
	for _, path := range []string{"/console", "/console/pets/1", "/console/keys", "/console/nothing"} {
		if p := b.get(path); !strings.Contains(p.body, findBox) {
			t.Errorf("%s has no box to find a pet:\n%s", path, p.body)
		}
	}
	for _, other := range []*browser{s.browser(), s.signedIn(animalstore.Write), s.signedIn(animalstore.Admin)} {
		if p := other.get("/console/pets/new"); strings.Contains(p.body, `class="find"`) {
			t.Error("somebody who may not read has a box to find a pet")
		}
		if p := other.get("/console/find?find=Rex"); p.status == http.StatusOK {
			t.Errorf("somebody who may not read finds %s", p.body)
		}
	}
	found := func(p shown) (names []string) {
		for _, m := range petLink.FindAllStringSubmatch(p.body, -1) {
			names = append(names, html.UnescapeString(m[1]))
		}
		return names
	}
	for text, want := range map[string]string{
		"rex": "[Rex rexona]", " REX ": "[Rex rexona]", "(rex)": "[Rex rexona]", "7-of": "[7 of 9]", "STRASSE": "[Straße]", "7 o": "[7 of 9]", "of": "[7 of 9]", "<B>": "[<b>Tom</b>]", "nobody": "[]", "ex": "[]", "": "[<b>Tom</b> Max 7 of 9 Straße rexona Rex]",
	} {
		p := b.get("/console/pets?find=" + url.QueryEscape(text))
		if got := fmt.Sprint(found(p)); p.status != http.StatusOK || got != want {
			t.Errorf("%q: got %d %s, want %s\n%s", text, p.status, got, want, p.body)
		}
		p.want(t, text, http.StatusOK, `name="find" type="search" value="`+html.EscapeString(strings.TrimSpace(text))+`"`)
	}
	for _, text := range []string{"5", " 5 ", "+5", "005", "#5", " # 5"} {
		b.get("/console/pets?find="+url.QueryEscape(text)).wantMoved(t, text, "/console/pets/5")
	}
	b.get("/console/pets?find=%2399&status=sold").wantMoved(t, "no such id", "/console/pets?find=%2399&in=names&status=sold")
	b.get("/console/pets?find=%2399&in=names&status=sold").want(t, "no such id", http.StatusOK, "No pet that is sold", "“<bdi>99</bdi>”", "no pet has the id 99")
	// The filters narrow it, and keep what was typed.
	p := b.get("/console/pets?find=rex&status=sold")
	p.want(t, "and a status", http.StatusOK, `href="/console/pets?find=rex&amp;status=available"`, `<input type="hidden" name="find" value="rex">`)
	if got := fmt.Sprint(found(b.get("/console/pets?find=rex&status=available&category=Dogs"))); got != "[Rex rexona]" {
		t.Errorf("with other filters: got %s, want both", got)
	}
	long := url.QueryEscape(strings.Repeat("ß", 101))
	b.get("/console/pets?find="+long).want(t, "too long", http.StatusBadRequest, findBox)
	b.get("/console/pets?find=...").want(t, "only separators", http.StatusBadRequest, findBox, "-_/.,()")
	b.get("/console/find?find="+long).want(t, "too long to suggest", http.StatusBadRequest)
	b.get("/console/pets?find=%ff").want(t, "not text", http.StatusBadRequest)
}

// TestSuggestions: the first matches with their pictures and categories. Without a match, it
// is one request.
func TestSuggestions(t *testing.T) {
	t.Parallel()
	s := start(t)
	secret, _ := s.Key("clerk", animalstore.Read, 1<<30)
	b := s.browser()
	b.signIn(secret)
	for i := range 12 {
		s.Pet(fmt.Sprintf("Rex <%02d>", i))
	}
	s.Pet("7 of 9")
	s.Pet("7")
	s.category(1, "Dogs")
	s.Photo(s.Pet("15").ID)
	for _, test := range []struct {
		text, want string
		calls      int64
	}{
		{"nobody", `[]`, 1},
		{"", `[]`, 0},
		{"7 ", `[{"id":7,"name":"Rex \u003c06\u003e","categoryId":1,"status":"available","category":"Dogs","initial":"R","tone":0},{"id":14,"name":"7","categoryId":1,"status":"available","category":"Dogs","initial":"7","tone":6},{"id":13,"name":"7 of 9","categoryId":1,"status":"available","category":"Dogs","initial":"7","tone":0}]`, 4},
		{"#14", `[{"id":14,"name":"7","categoryId":1,"status":"available","category":"Dogs","initial":"7","tone":6}]`, 4},
		{"15", `[{"id":15,"name":"15","categoryId":1,"status":"available","category":"Dogs","thumbnail":"/console/photos/1/thumbnail?at=1794744000000","tone":0}]`, 4},
		{"-99", `[]`, 1},
		{"...", `[]`, 1},
		{"99", `[]`, 2},
	} {
		before := s.left(secret)
		p := b.get("/console/find?find=" + url.QueryEscape(test.text))
		if calls := before - s.left(secret) - 1; p.status != http.StatusOK || p.body != test.want || calls != test.calls {
			t.Errorf("%q: got %d %s for %d requests, want %s for %d", test.text, p.status, p.body, calls, test.want, test.calls)
		}
		if p.header.Get("Content-Type") != "application/json" || p.header.Get("Cache-Control") != "no-store" || p.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%q: got the header %v, want JSON that isn't stored", test.text, p.header)
		}
	}
	if got := strings.Count(b.get("/console/find?find=rex").body, `"id"`); got != 8 {
		t.Errorf("got %d matches, want the first 8", got)
	}
	limited, _ := s.Key("limited", animalstore.Read, 2)
	b.signIn(limited)
	b.get("/console/find?find=rex")
	b.get("/console/find?find=rex").want(t, "over the limit", http.StatusTooManyRequests)
}
