package api_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"animalstore"
)

// TestRefusedMediaType: a 415 says what would be accepted.
func TestRefusedMediaType(t *testing.T) {
	s := start(t)
	pet := petPath(s.addOne(t, "available").ID)
	const accepted = "application/json, application/merge-patch+json"
	for _, test := range []struct {
		call             call
		patch, encodings string
	}{
		{with(patch(pet, `{}`), "Content-Type", "text/plain"), accepted, ""},
		{with(patch(pet, `{}`), "Content-Encoding", "gzip"), accepted, "identity"},
		{with(post("/v1/pets", `{}`), "Content-Type", "text/plain"), "", ""},
		{with(post("/v1/pets", `{}`), "Content-Encoding", "br"), "", "identity"},
		{with(post("/v1/pets", `{}`), "Content-Encoding", "identity, gzip"), "", "identity"},
		{with(post("/v1/pets", `{}`), "Content-Encoding", "identity", "Content-Encoding", "gzip"), "", "identity"},
		{with(put("/v1/categories/7", `{}`), "Content-Encoding", "gzip"), "", "identity"},
	} {
		test.call.bad = true
		got := s.do(t, test.call)
		got.want(t, http.StatusUnsupportedMediaType, animalstore.UnsupportedMediaType)
		if patch, encodings := got.header.Get("Accept-Patch"), got.header.Get("Accept-Encoding"); patch != test.patch || encodings != test.encodings {
			t.Errorf("%s %s %v: got Accept-Patch %q and Accept-Encoding %q, want %q and %q", test.call.method, test.call.path, test.call.header, patch, encodings, test.patch, test.encodings)
		}
	}
	for path, want := range map[string]string{pet: accepted, "/v1/store/orders/1": accepted, "/v1/keys/1": accepted, "/v1/pets": "", "/v1/categories/7": ""} {
		if got := s.do(t, call{method: "OPTIONS", path: path}).header.Get("Accept-Patch"); got != want {
			t.Errorf("OPTIONS %s: got Accept-Patch %q, want %q", path, got, want)
		}
	}
}

// TestUnreadableBody: the message says what was wrong with a body that could not be
// read.
func TestUnreadableBody(t *testing.T) {
	s := start(t)
	head := "POST /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + s.owner + "\r\n"
	const chunked = "Transfer-Encoding: chunked\r\n\r\n"
	for _, test := range []struct{ name, rest, want string }{
		{"a chunk whose length is no number", chunked + "xyz\r\n{}\r\n0\r\n\r\n", "not in valid chunks"},
		{"a chunk that is longer than it says", chunked + "1\r\n{}\r\n0\r\n\r\n", "not in valid chunks"},
		{"chunks without the last", chunked + "2\r\n{}\r\n", "ended before its last chunk"},
		{"a chunk that ends early", chunked + "9\r\n{}", "ended before its last chunk"},
		{"fewer bytes than announced", "Content-Length: 9\r\n\r\n{}", "shorter than Content-Length says"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := s.rawEnd(t, head+test.rest, true)
			got.want(t, http.StatusBadRequest, animalstore.MalformedJSON)
			got.wantMessage(t, test.want)
		})
	}
}

// TestFailedChange: a change that fails unexpectedly may have been made, and the
// response says so. A read has nothing to say.
func TestFailedChange(t *testing.T) {
	s := start(t)
	const doubt = "the change may or may not have been made"
	s.db.arm("CreatePet", func(ctx context.Context) error {
		if _, _, err := s.db.DB.CreatePet(ctx, animalstore.NewPet{Name: "Rex", CategoryID: 7}, nil); err != nil {
			return err
		}
		panic("a bug after the commit")
	})
	got := s.do(t, post("/v1/pets", `{"name":"Rex","categoryId":7}`))
	got.want(t, http.StatusInternalServerError, animalstore.InternalError)
	got.wantMessage(t, doubt)
	if pets := s.do(t, call{path: "/v1/pets"}).pets(t); len(pets) != 1 {
		t.Errorf("got %d pets, want the one that was stored", len(pets))
	}
	s.db.arm("Pet", func(context.Context) error { panic("a bug") })
	read := s.do(t, call{path: "/v1/pets/1"})
	read.want(t, http.StatusInternalServerError, animalstore.InternalError)
	if strings.Contains(string(read.body), "change") {
		t.Errorf("got %v, want nothing about a change", read)
	}
}
