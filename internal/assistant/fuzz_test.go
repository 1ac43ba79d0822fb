package assistant_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"animalstore/internal/assistant"
)

// FuzzMessage: no message makes the server panic, which would end the process, or gets a
// response that isn't JSON.
func FuzzMessage(f *testing.F) {
	for _, message := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`,
		`{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"find_pets","arguments":{"name":"R","ids":[1,2],"limit":1e0}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"change_order","arguments":{"orderId":1,"note":null}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true}}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":null,"method":"ping"}`, `[]`, `{`, `null`, ``,
	} {
		f.Add(message, "")
		f.Add(message, "2026-07-28")
	}
	a := assistant.New("1", slog.New(slog.DiscardHandler))
	api := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, `{"code":"pet_not_found","message":"there is no pet with this id","status":404}`)
	})
	f.Fuzz(func(t *testing.T, message, version string) {
		r := newRequest()
		if version != "" {
			r.Header.Set("Mcp-Protocol-Version", version)
		}
		res := a.Respond(r, []byte(message), func() bool { return true }, api, func(string) bool { return true })
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		stream := res.Header.Get("Content-Type") == "text/event-stream"
		if !stream && len(body) > 0 && !json.Valid(body) || len(body) == 0 && res.StatusCode != http.StatusAccepted {
			t.Errorf("%d %q", res.StatusCode, body)
		}
	})
}

// TestKeyEndsDuringACall: a key that is revoked between the two calls of a tool fails it.
func TestKeyEndsDuringACall(t *testing.T) {
	a := assistant.New("1", slog.New(slog.DiscardHandler))
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/v1/photos" {
			io.WriteString(w, `[{"id":3,"petId":1,"contentType":"image/jpeg","width":1,"height":1,"bytes":1,"createdAt":"2026-11-15T12:00:00.000Z"}]`)
			return
		}
		w.WriteHeader(http.StatusUnauthorized)
		io.WriteString(w, `{"code":"invalid_api_key","message":"this key is not valid","status":401}`)
	})
	got := respond(t, a, api, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pet_photo","arguments":{"petId":1}}}`)
	if !strings.Contains(got, `"isError":true`) || !strings.Contains(got, "invalid_api_key") || strings.Contains(got, "image/jpeg") {
		t.Errorf("got %s, want invalid_api_key and no photo", got)
	}
}

// TestPanic: a panic in the API fails only the call, although the SDK runs tools in its
// own goroutine.
func TestPanic(t *testing.T) {
	a := assistant.New("1", slog.New(slog.DiscardHandler))
	api := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	got := respond(t, a, api, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"inventory","arguments":{}}}`)
	if !strings.Contains(got, "internal_error") {
		t.Errorf("got %s, want internal_error", got)
	}
}

func newRequest() *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	return r
}

// respond returns the body of the response to a message.
func respond(t *testing.T, a *assistant.Assistant, api http.Handler, message string) string {
	t.Helper()
	body, err := io.ReadAll(a.Respond(newRequest(), []byte(message), func() bool { return true }, api, func(string) bool { return true }).Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}
