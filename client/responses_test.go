package client_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"animalstore"
	"animalstore/client"
	"animalstore/client/clienttest"
)

const secret = "ast_live_0123456789abcdefghijklmnopqrstuv012345"

// TestUnexpectedResponses: the error for a response that isn't from the service says
// what it was, on one short line and without the key.
func TestUnexpectedResponses(t *testing.T) {
	html := []string{"Content-Type", "text/html; charset=utf-8"}
	tests := map[string]struct {
		response reply
		status   int
		want     []string // in the error
		sent     int
	}{
		"a page instead of pets":   {response(200, "<html>\n  <title>Log in</title>", html...), 200, []string{"text/html", "Log in", "base URL"}, 1},
		"an empty object":          {response(200, `{}`), 200, []string{"lacks"}, 5},
		"null":                     {response(200, `null`), 200, []string{"lacks"}, 5},
		"an array":                 {response(200, `[]`), 200, []string{"not the expected JSON"}, 5},
		"two values":               {response(200, petJSON+petJSON), 200, []string{"not the expected JSON"}, 5},
		"another status":           {response(202, petJSON), 202, []string{"not the expected one"}, 1},
		"no body where one is due": {response(204, ""), 204, []string{"not the expected one"}, 1},
		"unasked 304":              {response(304, ""), 304, []string{"not the expected one"}, 1},
		"a proxy's 404":            {response(404, "<h1>nothing here</h1>", html...), 404, []string{"nothing here"}, 1},
		"a proxy's 502":            {response(502, "<h1>sorry</h1>", html...), 502, []string{"sorry", "after 5 attempts"}, 5},
		"an error of another API":  {response(400, `{"error":"nope"}`), 400, []string{"nope"}, 1},
		"no type":                  {response(200, petJSON, "Content-Type", ""), 200, []string{"not JSON"}, 1},
		"a long page":              {response(403, strings.Repeat("long ", 10_000), html...), 403, []string{"long long", "…"}, 1},
		"the key in a page":        {response(500, strings.Repeat("x", 160)+"Authorization: Bearer "+secret, html...), 500, []string{"[API key]"}, 5},
		"the key in half a page":   {response(200, `{"id":1,"headers":"Bearer `+secret), 200, []string{"[API key]"}, 5},
		"the key in a redirect":    {response(302, "", "Location", "http://evil.test/"+secret), 302, []string{"[API key]", "redirect"}, 1},
		"bytes that are not text":  {response(403, "\x00\xff\xfe\x1b[31m", html...), 403, []string{`\x00`}, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &scripted{responses: []reply{test.response}}
				c, err := client.New("http://store.test", secret, client.WithHTTPClient(&http.Client{Transport: s}))
				if err != nil {
					t.Fatal(err)
				}
				_, err = c.GetPet(t.Context(), 1)
				var odd *client.ResponseError
				if !errors.As(err, &odd) || odd.Status != test.status || odd.Operation != "getPet" {
					t.Fatalf("got %v, want a ResponseError of getPet with status %d", err, test.status)
				}
				for _, part := range append(test.want, "getPet") {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("got %q, want %q in it", err, part)
					}
				}
				if text := err.Error(); strings.Contains(text, secret[9:19]) || strings.ContainsAny(text, "\n\x00\x1b") || len(text) > 600 {
					t.Errorf("got %q, want one short line without the key", text)
				}
				if len(s.sent) != test.sent {
					t.Errorf("sent %d requests, want %d", len(s.sent), test.sent)
				}
			})
		})
	}
}

// TestSecretOfANewKey: the response to createKey contains a secret, which no error
// may show, even if the response is incomplete.
func TestSecretOfANewKey(t *testing.T) {
	c, s := scriptedClient(t, []reply{response(201, `{"id":7,"secret":"ast_live_fresh","na`)})
	_, err := c.CreateKey(t.Context(), client.NewKey{Name: "k"})
	if !errors.Is(err, client.ErrOutcomeUnknown) || strings.Contains(err.Error(), "fresh") || len(s.sent) != 1 {
		t.Errorf("got %v after %d requests, want ErrOutcomeUnknown after one, without the secret", err, len(s.sent))
	}
	c, _ = scriptedClient(t, []reply{response(201, `{"id":7,"name":"k","plan":"free","permissions":["read","fly"],"secret":"ast_live_fresh"}`)})
	key, err := c.CreateKey(t.Context(), client.NewKey{Name: "k"})
	if err != nil || key.Secret != "ast_live_fresh" || key.Permissions != animalstore.Read {
		t.Errorf("got %+v, %v, want the secret, and the known permissions", key.Key, err)
	}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("made", "key", key)
	if text := fmt.Sprintf("%v %+v %#v %s %v", key, key, key, &key, log.String()); strings.Contains(text, "fresh") {
		t.Errorf("got %s, want it without the secret", text)
	}
}

// TestKeyStaysHidden: printing a client in any format doesn't print its key.
func TestKeyStaysHidden(t *testing.T) {
	c, err := client.New("http://store.test", secret)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("client", "c", c)
	holder := struct {
		C *client.Client
		c *client.Client
	}{c, c}
	text := fmt.Sprintf("%v %+v %#v %s %q %+v %#v %v", c, c, c, c, c, holder, holder, log.String())
	text += fmt.Sprintf("%+v", *c)
	if strings.Contains(text, secret[9:]) {
		t.Errorf("got %s, want it without the key", text)
	}
	if !strings.Contains(text, "store.test") {
		t.Errorf("got %s, want the address", text)
	}
}

// TestRedirects: the key is never sent to the target of a redirect.
func TestRedirects(t *testing.T) {
	var elsewhere atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		var here atomic.Int64
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			here.Add(1)
			http.Redirect(w, r, other.URL+r.URL.Path, status)
		}))
		// The caller's own client would follow redirects.
		c, err := client.New(server.URL, secret, client.WithHTTPClient(&http.Client{}))
		if err != nil {
			t.Fatal(err)
		}
		calls := map[string]error{
			"GET":  only(c.GetLimits(t.Context())),
			"POST": only(c.CreatePet(t.Context(), animalstore.NewPet{Name: "Rex"})),
		}
		for method, err := range calls {
			var odd *client.ResponseError
			if !errors.As(err, &odd) || odd.Status != status || !strings.Contains(err.Error(), other.URL) || errors.Is(err, client.ErrOutcomeUnknown) {
				t.Errorf("%s, %d: got %v, want an error that names the target", method, status, err)
			}
		}
		if here.Load() != 2 || elsewhere.Load() != 0 {
			t.Errorf("%d: got %d requests here and %d elsewhere, want 2 and 0", status, here.Load(), elsewhere.Load())
		}
		server.Close()
	}
}

// TestHugeResponse: reading an endless response stops at a limit.
func TestHugeResponse(t *testing.T) {
	var sent atomic.Int64
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, "[")
		chunk := []byte(strings.Repeat(petJSON+",", 1000))
		for sent.Load() < 1<<30 {
			n, err := w.Write(chunk)
			if err != nil {
				return
			}
			sent.Add(int64(n))
		}
	}))
	defer server.Close()
	c, err := client.New(server.URL, secret)
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseIdleConnections()
	_, err = c.FindPet(t.Context(), 1)
	var odd *client.ResponseError
	if !errors.As(err, &odd) || !strings.Contains(err.Error(), "MiB") || requests.Load() != 1 {
		t.Errorf("got %v after %d requests, want a ResponseError about the size after one", err, requests.Load())
	}
	// The client doesn't control the connection's buffers.
	if got, most := sent.Load(), int64(client.MaxResponse+64<<20); got > most {
		t.Errorf("got %d bytes sent, want at most %d", got, most)
	}
}

// TestErrorsOfTheNetwork: errors name the operation, and say whether a change may have
// been made.
func TestErrorsOfTheNetwork(t *testing.T) {
	const address = "127.0.0.1:1" // where nothing listens
	dead, err := client.New("http://"+address, secret, client.WithMaxAttempts(2), client.WithBackoff(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	_, err = dead.CreateKey(t.Context(), client.NewKey{Name: "k"})
	var op *net.OpError
	if !errors.As(err, &op) || errors.Is(err, client.ErrOutcomeUnknown) {
		t.Errorf("got %v, want the network's error without ErrOutcomeUnknown", err)
	}
	for _, part := range []string{"createKey: POST http://" + address + "/v1/keys: ", "refused", "after 2 attempts"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("got %q, want %q in it", err, part)
		}
	}
	cut := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer cut.Close()
	c, err := client.New(cut.URL, secret, client.WithMaxAttempts(2), client.WithBackoff(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.CreatePet(t.Context(), animalstore.NewPet{Name: "Rex"})
	if !errors.Is(err, io.EOF) || !errors.Is(err, client.ErrOutcomeUnknown) {
		t.Errorf("got %v, want EOF and ErrOutcomeUnknown", err)
	}
	_, err = c.GetLimits(t.Context())
	if !errors.Is(err, io.EOF) || errors.Is(err, client.ErrOutcomeUnknown) {
		t.Errorf("got %v, want only EOF: there was nothing to change", err)
	}
	plain := httptest.NewTLSServer(http.NotFoundHandler())
	plain.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	defer plain.Close()
	var waits atomic.Int64
	c, err = client.New(plain.URL, secret, client.WithOnWait(func(client.Wait) { waits.Add(1) }))
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.CreatePet(t.Context(), animalstore.NewPet{Name: "Rex"})
	if err == nil || !strings.Contains(err.Error(), "certificate") || waits.Load() != 0 || errors.Is(err, client.ErrOutcomeUnknown) {
		t.Errorf("got %v after %d waits, want an error about the certificate at once", err, waits.Load())
	}
}

// TestUnsentIsSentAgain: without a connection nothing was done, so even createKey is
// retried.
func TestUnsentIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
		made := response(201, `{"id":7,"name":"k","plan":"free","secret":"ast_live_fresh"}`)
		c, s := scriptedClient(t, []reply{broken(refused), broken(refused), made})
		if _, err := c.CreateKey(t.Context(), client.NewKey{Name: "k"}); err != nil || len(s.sent) != 3 {
			t.Errorf("got %v after %d requests, want success after 3", err, len(s.sent))
		}
		c, s = scriptedClient(t, []reply{broken(errors.New("connection reset by peer")), made})
		if _, err := c.CreateKey(t.Context(), client.NewKey{Name: "k"}); !errors.Is(err, client.ErrOutcomeUnknown) || len(s.sent) != 1 {
			t.Errorf("got %v after %d requests, want ErrOutcomeUnknown after one", err, len(s.sent))
		}
		c, s = scriptedClient(t, []reply{apiError(503, "half_done", "Retry-After", "1"), made})
		if _, err := c.CreateKey(t.Context(), client.NewKey{Name: "k"}); !errors.Is(err, client.ErrOutcomeUnknown) || len(s.sent) != 1 {
			t.Errorf("after an unknown code: got %v after %d requests, want ErrOutcomeUnknown after one", err, len(s.sent))
		}
		c, s = scriptedClient(t, []reply{apiError(500, animalstore.InternalError)})
		if _, err := c.CreatePet(t.Context(), animalstore.NewPet{Name: "Rex"}); !errors.Is(err, client.ErrOutcomeUnknown) || len(s.sent) != 1 {
			t.Errorf("after a fault of the service: got %v after %d requests, want ErrOutcomeUnknown after one", err, len(s.sent))
		}
	})
}

// TestRealRefusals: errors of the real service have their code, status and message.
func TestRealRefusals(t *testing.T) {
	store := clienttest.New(t, clienttest.WithPermissions(animalstore.Read))
	_, err := store.Client.CreatePet(t.Context(), animalstore.NewPet{Name: "Rex"})
	wantCode(t, err, animalstore.InsufficientPermission)
	var refused *client.Error
	if !errors.As(err, &refused) || refused.Status != http.StatusForbidden || refused.Operation != "createPet" || refused.RequestID == "" {
		t.Errorf("got %+v, want a 403 of createPet with its request id", refused)
	}
	anonymous := store.NewClient("not-a-key-of-this-store")
	_, err = anonymous.GetLimits(t.Context())
	wantCode(t, err, animalstore.InvalidAPIKey)
	if got, ok := anonymous.RateLimit(); ok {
		t.Errorf("got %+v, want nothing: the response was about the address, not the key", got)
	}
	_, err = store.Client.GetOrder(t.Context(), 99)
	wantCode(t, err, animalstore.OrderNotFound)
	_, err = store.Client.FindPet(t.Context(), -1)
	wantCode(t, err, animalstore.PetNotFound)
}
