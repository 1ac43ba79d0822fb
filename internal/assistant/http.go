package assistant

import (
	"bytes"
	"context"
	"io"
	"net/http"

	"animalstore/client"
	"animalstore/internal/inprocess"
)

// Respond returns the response to a POST request, whose body has been read. Calls of the API
// go to api, which adds the credential. allowed reports whether the key may call an operation
// of the API: tools that call others aren't listed. A message that calls no tool is charged
// with charge before it is handled; if that fails, Respond returns nil.
func (a *Assistant) Respond(r *http.Request, body []byte, charge func() bool, api http.Handler, allowed func(operation string) bool) *http.Response {
	w := inprocess.NewRecorder(nil)
	method, invalid := checkMessage(body)
	forbidden := a.origin.Check(r)
	switch callsTool := forbidden == nil && invalid == nil && method == "tools/call"; {
	case !callsTool && !charge():
		return nil
	case forbidden != nil:
		refuse(w, http.StatusForbidden, nil, invalidRequest("requests from web pages of other origins are refused"))
	case invalid != nil:
		refuse(w, http.StatusBadRequest, nil, invalid)
	default:
		caller := &Caller{API: newClient(r, api), Allowed: allowed}
		caller.deadline, _ = r.Context().Deadline()
		// The tools keep to the deadline, so that there is always a response.
		ctx := withCaller(context.WithoutCancel(r.Context()), caller)
		in := r.WithContext(ctx)
		in.Body = io.NopCloser(bytes.NewReader(body))
		a.http.ServeHTTP(w, in)
		if caller.succeeded.Load() {
			return w.Response(r)
		}
		return explain(w.Response(r))
	}
	return w.Response(r)
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
