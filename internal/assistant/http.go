package assistant

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"

	"animalstore/client"
	"animalstore/internal/inprocess"
)

// Respond returns the response to a POST request, whose body has been read. Calls of the API
// go to api, which adds the credential. allowed reports whether the key may call an operation
// of the API: tools that call others aren't listed.
func (a *Assistant) Respond(r *http.Request, body []byte, api http.Handler, allowed func(operation string) bool) *http.Response {
	w := inprocess.NewRecorder(nil)
	switch err := a.origin.Check(r); {
	case err != nil:
		refuse(w, http.StatusForbidden, "requests from web pages of other origins are refused")
	case bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("[")):
		refuse(w, http.StatusBadRequest, "batches are not supported: send each message in a separate request")
	default:
		caller := &Caller{API: newClient(r, api), Lists: func(name string) bool { return mayUse(name, allowed) }}
		caller.deadline, _ = r.Context().Deadline()
		// The tools keep to the deadline, so that there is always a response.
		ctx := withCaller(context.WithoutCancel(r.Context()), caller)
		in := r.WithContext(ctx)
		in.Body = io.NopCloser(bytes.NewReader(body))
		a.http.ServeHTTP(w, in)
	}
	return asJSON(w.Response(r))
}

// mayUse reports whether all operations of a tool are allowed.
func mayUse(name string, allowed func(operation string) bool) bool {
	i := slices.IndexFunc(tools(), func(t tool) bool { return t.name == name })
	return !slices.ContainsFunc(tools()[i].operations, func(operation string) bool { return !allowed(operation) })
}

// newClient returns a client that never waits and never retries: that is up to the
// assistant.
func newClient(r *http.Request, api http.Handler) *client.Client {
	c, err := client.New("http://assistant", "added-by-the-server",
		client.WithHTTPClient(&http.Client{Transport: &inprocess.Transport{API: api, For: r}}),
		client.WithMaxAttempts(1), client.WithMaxWait(0), client.WithUserAgent("animalstore-mcp"))
	if err != nil {
		panic(err) // all of it is fixed
	}
	return c
}

// refuse writes a JSON-RPC error for a message that isn't handled.
func refuse(w http.ResponseWriter, status int, message string) {
	const invalidRequest = -32600 // of JSON-RPC
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":null,"error":{"code":%d,"message":%s}}`, invalidRequest, encode(message))
}

// asJSON returns a response, or the same error as JSON if the SDK wrote it as plain text.
func asJSON(res *http.Response) *http.Response {
	mediaType, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if mediaType != "text/plain" {
		return res
	}
	text, err := io.ReadAll(res.Body)
	if err != nil {
		panic(err) // it is in memory
	}
	w := inprocess.NewRecorder(nil)
	refuse(w, res.StatusCode, strings.TrimSpace(string(text)))
	return w.Response(res.Request)
}
