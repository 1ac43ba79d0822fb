package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"animalstore"
	"animalstore/internal/api"
	"animalstore/internal/db"
)

// fuzzed passes a fuzzer's request directly to the handler, because the network would
// refuse some of them. The response must match the document. Unless sent is nil, the
// document must also allow every request that the server accepts.
func (s *service) fuzzed(t *testing.T, r *http.Request, sent []byte) response {
	t.Helper()
	r = r.WithContext(context.WithValue(t.Context(), badRequest{}, true))
	r.URL.Scheme, r.URL.Host = "http", "fuzz"
	res, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	got := response{res.StatusCode, res.Header, body}
	if got.status >= 500 {
		t.Fatalf("got %v, want no 5xx", got)
	}
	if got.status < 300 && sent != nil {
		e := exchange{method: r.Method, url: r.URL, header: r.Header, validRequest: sent}
		if err := e.checkRequest(e.route()); err != nil {
			t.Fatalf("got %v, want what is taken documented: %v", got, err)
		}
	}
	return got
}

func (s *service) request(method, path, query string, body []byte) *http.Request {
	return &http.Request{
		Method:        method,
		URL:           &url.URL{Path: path, RawQuery: query},
		Header:        http.Header{"Authorization": {"Bearer " + s.owner}, "Content-Type": {"application/json"}},
		Body:          io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)),
	}
}

// echoDB returns the pet it is given without storing it.
type echoDB struct{ *faultyDB }

func echo(store *faultyDB) db.DB { return echoDB{store} }

func (echoDB) CreatePet(ctx context.Context, p animalstore.NewPet, _ *db.Idempotency) (animalstore.Pet, bool, error) {
	if err := ctx.Err(); err != nil {
		return animalstore.Pet{}, false, err
	}
	return animalstore.Pet{ID: 1, Name: p.Name, CategoryID: p.CategoryID, Status: p.Status}, false, nil
}

func FuzzBody(f *testing.F) {
	for _, body := range []string{
		``, `{}`, `null`, `[]`, `{"name":"Rex","categoryId":7}`, `{"name":"Rex","categoryId":7,"status":"sold"}`,
		`{"name":"\ud83d\ude00","categoryId":-0.0}`, `{"name":"Rex","categoryId":1e2,"status":null}`,
		`{"name":"Rex","name":"Rex","categoryId":7}`, `{"x":{"y":1,"y":1},"name":"Rex","categoryId":7}`,
		"{\"name\":\"\xff\",\"categoryId\":7}", `{"name":"\u0000","categoryId":7}`, `{"name":" ","categoryId":7}`,
	} {
		f.Add([]byte(body))
	}
	s := start(f, func(with *setup) { with.wrap = echo }).inProcess()
	f.Fuzz(func(t *testing.T, body []byte) {
		got := s.fuzzed(t, s.request("POST", "/v1/pets", "", body), body)
		switch fields, wellFormed, certain := strictObject(body); {
		case got.status == http.StatusCreated:
			var pet animalstore.Pet
			if err := json.Unmarshal(got.body, &pet); err != nil {
				t.Fatal(err)
			}
			checkPet(t, pet, fields)
		case got.code() == animalstore.MalformedJSON && wellFormed && certain:
			t.Errorf("got %v, want %q read: it is one JSON object", got, body)
		case got.code() == animalstore.ValidationFailed && !wellFormed && certain:
			t.Errorf("got %v, want %q refused as JSON", got, body)
		case got.status != http.StatusBadRequest && len(body) <= api.MaxBody:
			t.Errorf("got %v, want 201 or 400", got)
		}
	})
}

// checkPet compares what the server made of a body with what encoding/json does.
func checkPet(t *testing.T, pet animalstore.Pet, fields map[string]json.RawMessage) {
	t.Helper()
	var name, status string
	if err := json.Unmarshal(fields["name"], &name); err != nil || pet.Name != name {
		t.Errorf("name: got %q, want %q (%v)", pet.Name, name, err)
	}
	if n := utf8.RuneCountInString(name); n < 1 || n > 1024 || strings.TrimSpace(name) == "" || strings.Contains(name, "\x00") {
		t.Errorf("name: got %q accepted", name)
	}
	if want, ok := exactInteger(fields["categoryId"]); !ok || pet.CategoryID != want {
		t.Errorf("categoryId: got %d, want %s", pet.CategoryID, fields["categoryId"])
	}
	if raw, ok := fields["status"]; !ok {
		status = "available"
	} else if err := json.Unmarshal(raw, &status); err != nil {
		t.Errorf("status: got %s accepted", raw)
	}
	if string(pet.Status) != status || !slices.Contains(animalstore.PetStatuses, pet.Status) {
		t.Errorf("status: got %q, want %q", pet.Status, status)
	}
}

// strictObject reads one object as the contract wants it, by other means than
// the server's. It is not certain where there may be lone surrogates or great
// depth, which encoding/json takes.
func strictObject(body []byte) (fields map[string]json.RawMessage, wellFormed, certain bool) {
	fields = map[string]json.RawMessage{}
	if json.Unmarshal(body, &fields) != nil || fields == nil {
		return nil, false, true
	}
	certain = !bytes.Contains(bytes.ToLower(body), []byte(`\ud`)) && bytes.Count(body, []byte("["))+bytes.Count(body, []byte("{")) < 1000
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	return fields, utf8.Valid(body) && uniqueNames(d), certain
}

// uniqueNames reads one value and reports whether no object in it, nor the value
// itself, names a field twice.
func uniqueNames(d *json.Decoder) bool {
	token, err := d.Token()
	if err != nil {
		return false
	}
	switch token {
	case json.Delim('['):
		for d.More() {
			if !uniqueNames(d) {
				return false
			}
		}
	case json.Delim('{'):
		seen := map[any]bool{}
		for d.More() {
			name, err := d.Token()
			if err != nil || seen[name] || !uniqueNames(d) {
				return false
			}
			seen[name] = true
		}
	default:
		return true
	}
	_, err = d.Token()
	return err == nil
}

func FuzzQuery(f *testing.F) {
	for _, query := range []string{
		"", "limit=1", "limit=100&status=sold", "limit=0", "limit=1&limit=1", "status=", "petId=7", "petId=x&status=placed",
		"cursor=L3YxL3BldHN8M3w", "cursor=L3YxL3BldHN8M3xzdGF0dXM9c29sZA", "cursor=L3YxL3BldHN8M3w=", "%zz", "a;b", "&&=&", "limit=%31", "LIMIT=x", "limit=+1", "status=s%6Fld",
	} {
		f.Add(query)
	}
	s := start(f).inProcess()
	s.add(f, some(5)...)
	f.Fuzz(func(t *testing.T, query string) {
		for _, path := range []string{"/v1/pets", "/v1/store/orders"} {
			got := s.fuzzed(t, s.request("GET", path, query, nil), []byte{})
			if got.status == http.StatusBadRequest {
				continue
			}
			got.want(t, http.StatusOK, "")
			values, err := url.ParseQuery(query)
			if err != nil {
				t.Errorf("%q: got %v, want it refused: %v", query, got, err)
			}
			limit := 20
			if values.Has("limit") {
				limit, err = strconv.Atoi(values.Get("limit"))
			}
			var page []json.RawMessage
			json.Unmarshal(got.body, &page)
			if err != nil || limit < 1 || limit > 100 || len(page) > limit || len(values["limit"]) > 1 {
				t.Errorf("%q: got %d entries, want no more than a limit from 1 to 100", query, len(page))
			}
			if status := values.Get("status"); status != "" && path == "/v1/pets" {
				for _, pet := range got.pets(t) {
					if string(pet.Status) != status {
						t.Errorf("%q: got %v, want %s alone", query, pet, status)
					}
				}
			}
		}
	})
}
