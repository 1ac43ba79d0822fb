package client_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"animalstore"
	"animalstore/client"
)

const secret = "ast_live_0123456789abcdefghijklmnopqrstuv012345"

// TestUnexpectedResponses: the error for a response that isn't from the service is one
// short line without the key, wherever the response quotes it. The scenarios in errors.json
// have what is simpler.
func TestUnexpectedResponses(t *testing.T) {
	html := []string{"Content-Type", "text/html; charset=utf-8"}
	tests := map[string]struct {
		response reply
		status   int
	}{
		"bytes that are not text": {response(403, "\x00\xff\xfe\x1b[31m", html...), 403},
		"the key where it is cut": {response(500, strings.Repeat("x", 160)+"Authorization: Bearer "+secret, html...), 500},
		"the key in half a page":  {response(200, `{"id":1,"headers":"Bearer `+secret), 200},
		"two values":              {response(200, petJSON+petJSON), 200},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				transport := &scripted{responses: []reply{test.response}}
				c, err := client.New("http://store.test", secret, client.WithHTTPClient(&http.Client{Transport: transport}))
				if err != nil {
					t.Fatal(err)
				}
				_, err = c.GetPet(t.Context(), 1)
				var odd *client.ResponseError
				if !errors.As(err, &odd) || odd.Status != test.status || odd.Operation != "getPet" {
					t.Fatalf("got %v, want a ResponseError of getPet with status %d", err, test.status)
				}
				if text := err.Error(); strings.Contains(text, secret[9:19]) || strings.ContainsAny(text, "\n\x00\x1b") || len(text) > 600 {
					t.Errorf("got %q, want one short line without the key", text)
				}
			})
		})
	}
}

// TestSecretsStayHidden: printing or logging a client, a new key or a new webhook, in any
// format, doesn't show its secret.
func TestSecretsStayHidden(t *testing.T) {
	c, _ := scriptedClient(t, []reply{
		response(201, `{"id":7,"name":"k","plan":"free","permissions":["read"],"secret":"ast_live_fresh"}`),
		response(201, `{"id":7,"secret":"whsec_fresh","url":"https://example.com/","state":"active"}`),
	})
	key, err := c.CreateKey(t.Context(), client.NewKey{Name: "k"})
	if err != nil || key.Secret != "ast_live_fresh" {
		t.Errorf("got %v, want the secret", err)
	}
	webhook, err := c.CreateWebhook(t.Context(), animalstore.NewWebhook{URL: "https://example.com/"})
	if err != nil || webhook.Secret != "whsec_fresh" {
		t.Errorf("got %v, want the secret", err)
	}
	holder := struct{ c *client.Client }{c} // fmt reads unexported fields without methods
	for _, value := range []any{c, *c, holder, key, &key, webhook, &webhook} {
		var text bytes.Buffer
		fmt.Fprintf(&text, "%v %+v %#v %s %q", value, value, value, value, value)
		slog.New(slog.NewJSONHandler(&text, nil)).Info("printed", "value", value)
		slog.New(slog.NewTextHandler(&text, nil)).Info("printed", "value", value)
		for _, hidden := range []string{"ast_live_secret", "fresh"} {
			if strings.Contains(text.String(), hidden) {
				t.Errorf("%T: got %s, want it without the secret", value, &text)
			}
		}
	}
}

// TestIncompleteSecret: a response without its secret has to be reported, because nobody
// can read the secret again. The error doesn't show a part of it.
func TestIncompleteSecret(t *testing.T) {
	calls := map[string]func(*client.Client) error{
		"createKey":     func(c *client.Client) error { return only(c.CreateKey(t.Context(), client.NewKey{Name: "k"})) },
		"rotateKey":     func(c *client.Client) error { return only(c.RotateKey(t.Context(), 7, 0)) },
		"createWebhook": func(c *client.Client) error { return only(c.CreateWebhook(t.Context(), animalstore.NewWebhook{})) },
		"rotateWebhook": func(c *client.Client) error { return only(c.RotateWebhook(t.Context(), 7, 0)) },
	}
	for name, call := range calls {
		for _, body := range []string{`{"id":7,"secret":"fresh","na`, `{"id":7,"name":"k","plan":"free","url":"https://example.com/","state":"active"}`} {
			status := http.StatusCreated
			if strings.HasPrefix(name, "rotate") {
				status = http.StatusOK
			}
			c, s := scriptedClient(t, []reply{response(status, body)})
			if err := call(c); !errors.Is(err, client.ErrOutcomeUnknown) || strings.Contains(err.Error(), "fresh") || len(s.sent) != 1 {
				t.Errorf("%s, %s: got %v after %d requests, want ErrOutcomeUnknown after one, without the secret", name, body, err, len(s.sent))
			}
		}
	}
}

// TestUnknownCertificate: a server that isn't trusted gets nothing, and no second attempt.
func TestUnknownCertificate(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	defer server.Close()
	var waits atomic.Int64
	c, err := client.New(server.URL, secret, client.WithOnWait(func(client.Wait) { waits.Add(1) }))
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.CreatePet(t.Context(), animalstore.NewPet{Name: "Rex"})
	if err == nil || waits.Load() != 0 || errors.Is(err, client.ErrOutcomeUnknown) {
		t.Errorf("got %v after %d waits, want an error at once", err, waits.Load())
	}
}
